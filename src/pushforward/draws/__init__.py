"""What to do with draws: name them, keep them, choose the best few, refine them by MCMC.

Better latents are `Sampler.sample(..., latents="sobol")`.
"""

from pushforward.lazy import attach

__getattr__, __dir__ = attach(__name__)
