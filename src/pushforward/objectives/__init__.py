"""What moves the sampler; none of these knows how the score was fitted."""

from pushforward.objectives.base import Objective as Objective
from pushforward.objectives.base import View as View
from pushforward.objectives.combined import Combined as Combined
from pushforward.objectives.exact_kl import ExactKL as ExactKL
from pushforward.objectives.fisher import Fisher as Fisher
from pushforward.objectives.fisher import FisherStein as FisherStein
from pushforward.objectives.forward import Forward as Forward
from pushforward.objectives.kl import KL as KL
from pushforward.objectives.ksd import KSD as KSD
from pushforward.objectives.likelihood import Likelihood as Likelihood
from pushforward.objectives.reweighted import Reweighted as Reweighted
from pushforward.objectives.semi_implicit import SemiImplicitKL as SemiImplicitKL
from pushforward.objectives.steingan import SteinGAN as SteinGAN
