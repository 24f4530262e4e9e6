"""When training has paid for itself: a sampler's one-off cost against what NUTS asks for every draw."""

from pushforward.payback.measure import break_even as break_even
from pushforward.payback.record import BreakEven as BreakEven
