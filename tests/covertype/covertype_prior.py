"""The prior of the small posterior that the tests share."""

PRIOR = {"shape": 2.0, "rate": 1.0}
