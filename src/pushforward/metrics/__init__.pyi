from pushforward.metrics.floors import PROTOCOLS as PROTOCOLS
from pushforward.metrics.floors import Floor as Floor
from pushforward.metrics.floors import Protocol as Protocol
from pushforward.metrics.floors import against_exact as against_exact
from pushforward.metrics.floors import floor as floor
from pushforward.metrics.ksd import ksd_imq_v as ksd_imq_v
from pushforward.metrics.two_sample import sliced_w2 as sliced_w2
