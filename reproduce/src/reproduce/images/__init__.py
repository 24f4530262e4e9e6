"""Networks of one image, `(height, width, channels)`: energies, generators, score nets, classifiers."""

from reproduce.images.classifiers import SmallClassifier as SmallClassifier
from reproduce.images.classifiers import WideResNet as WideResNet
from reproduce.images.classifiers import small_classifier as small_classifier
from reproduce.images.classifiers import wide_resnet as wide_resnet
from reproduce.images.energies import DistanceEnergy as DistanceEnergy
from reproduce.images.energies import ResidualEnergy as ResidualEnergy
from reproduce.images.energies import distance_energy as distance_energy
from reproduce.images.energies import residual_energy as residual_energy
from reproduce.images.generators import Generator as Generator
from reproduce.images.generators import PaperGenerator as PaperGenerator
from reproduce.images.generators import generator as generator
from reproduce.images.generators import images_of as images_of
from reproduce.images.generators import kinds_of as kinds_of
from reproduce.images.generators import paper_generator as paper_generator
from reproduce.images.generators import with_shares as with_shares
from reproduce.images.unet import Correction as Correction
from reproduce.images.unet import Critic as Critic
from reproduce.images.unet import PlainScore as PlainScore
from reproduce.images.unet import UNet as UNet
from reproduce.images.unet import correction as correction
from reproduce.images.unet import critic as critic
from reproduce.images.unet import unet as unet
