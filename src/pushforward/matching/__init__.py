"""How well a vector field fits the score of the sampler's own draws; none of these knows what it is for."""

from pushforward.matching.critic import Critic as Critic
from pushforward.matching.denoising import Denoising as Denoising
from pushforward.matching.denoising import MultiNoise as MultiNoise
from pushforward.matching.exact import Exact as Exact
from pushforward.matching.kernel import Kernel as Kernel
from pushforward.matching.sliced import Sliced as Sliced
