"""What to do with draws: better latents are `Sampler.sample(..., latents="sobol")`; fewer draws are here."""

from pushforward.draws.thin import thin as thin
from pushforward.draws.thin import thin_indices as thin_indices
