"""How good are draws: distances to a target or to other draws, each against its floor."""

from pushforward.metrics.floors import Floor as Floor
from pushforward.metrics.floors import floor as floor
from pushforward.metrics.floors import floor_of_selection as floor_of_selection
from pushforward.metrics.ksd import ksd_imq_u as ksd_imq_u
from pushforward.metrics.ksd import ksd_imq_v as ksd_imq_v
from pushforward.metrics.ksd import ksd_rbf_u as ksd_rbf_u
from pushforward.metrics.modes import emc as emc
from pushforward.metrics.modes import mode_weight_error as mode_weight_error
from pushforward.metrics.modes import mode_weights as mode_weights
from pushforward.metrics.moments import mean_error as mean_error
from pushforward.metrics.moments import sd_ratio as sd_ratio
from pushforward.metrics.protocols import PROTOCOLS as PROTOCOLS
from pushforward.metrics.protocols import Protocol as Protocol
from pushforward.metrics.protocols import against_exact as against_exact
from pushforward.metrics.two_sample import energy_distance as energy_distance
from pushforward.metrics.two_sample import in_asinh as in_asinh
from pushforward.metrics.two_sample import mmd as mmd
from pushforward.metrics.two_sample import sliced_w2 as sliced_w2
