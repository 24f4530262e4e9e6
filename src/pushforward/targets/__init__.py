"""Un-normalised densities to sample, most with an exact sampler to be held against."""

from pushforward.lazy import attach

__getattr__, __dir__ = attach(__name__)
