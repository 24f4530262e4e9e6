"""Networks of one image, `(height, width, channels)`: energies, generators, score nets, classifiers."""

from pushforward.networks.images.classifiers import SmallClassifier as SmallClassifier
from pushforward.networks.images.classifiers import WideResNet as WideResNet
from pushforward.networks.images.classifiers import small_classifier as small_classifier
from pushforward.networks.images.classifiers import wide_resnet as wide_resnet
from pushforward.networks.images.critics import Critic as Critic
from pushforward.networks.images.critics import critic as critic
from pushforward.networks.images.energies import DistanceEnergy as DistanceEnergy
from pushforward.networks.images.energies import ResidualEnergy as ResidualEnergy
from pushforward.networks.images.energies import distance_energy as distance_energy
from pushforward.networks.images.energies import residual_energy as residual_energy
from pushforward.networks.images.generators import Generator as Generator
from pushforward.networks.images.generators import PaperGenerator as PaperGenerator
from pushforward.networks.images.generators import generator as generator
from pushforward.networks.images.generators import images_of as images_of
from pushforward.networks.images.generators import kinds_of as kinds_of
from pushforward.networks.images.generators import paper_generator as paper_generator
from pushforward.networks.images.generators import with_shares as with_shares
from pushforward.networks.images.scores import Correction as Correction
from pushforward.networks.images.scores import PlainScore as PlainScore
from pushforward.networks.images.scores import correction as correction
from pushforward.networks.images.unet import UNet as UNet
from pushforward.networks.images.unet import unet as unet
