from pushforward.matching.base import Direct as Direct
from pushforward.matching.base import Matching as Matching
from pushforward.matching.critic import Critic as Critic
from pushforward.matching.denoising import Denoising as Denoising
from pushforward.matching.denoising import MultiNoise as MultiNoise
from pushforward.matching.exact import Exact as Exact
from pushforward.matching.kernel import Kernel as Kernel
from pushforward.matching.sliced import Sliced as Sliced
