"""How well a vector field fits the score of the sampler's own draws; none of these knows what it is for."""

from pushforward.lazy import attach

__getattr__, __dir__ = attach(__name__)
