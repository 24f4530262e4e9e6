"""Networks: of one point, their sizes in their arrays, so that a file needs nothing more to rebuild them."""

from pushforward.networks.coupled import Coupled as Coupled
from pushforward.networks.coupled import Identity as Identity
from pushforward.networks.coupled import Modulated as Modulated
from pushforward.networks.coupled import coupled as coupled
from pushforward.networks.coupled import modulated as modulated
from pushforward.networks.invertible import Invertible as Invertible
from pushforward.networks.mlp import ACTIVATIONS as ACTIVATIONS
from pushforward.networks.mlp import MLP as MLP
from pushforward.networks.mlp import PIECEWISE_LINEAR as PIECEWISE_LINEAR
from pushforward.networks.mlp import mlp as mlp
