"""Markov chains and tempered particles, of which the stages of a fit and the check are made."""
