"""The method as a value: its stages, what they hand to each other, and every number of them."""
