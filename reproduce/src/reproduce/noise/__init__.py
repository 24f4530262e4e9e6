"""Maps with a little noise at their end: draws whose density can be estimated, whatever the map is."""

from reproduce.noise.evidence import evidence as evidence
from reproduce.noise.evidence import log_density as log_density
from reproduce.noise.head import NoiseHead as NoiseHead
from reproduce.noise.head import add_noise as add_noise
from reproduce.noise.head import noise_head as noise_head
from reproduce.noise.weighed import Evidence as Evidence
