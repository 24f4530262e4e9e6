from pushforward.matching.base import Direct as Direct
from pushforward.matching.base import Matching as Matching
from pushforward.matching.kernel import Kernel as Kernel
from pushforward.matching.losses import Critic as Critic
from pushforward.matching.losses import Denoising as Denoising
from pushforward.matching.losses import Exact as Exact
from pushforward.matching.losses import Sliced as Sliced
