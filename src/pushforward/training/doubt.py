"""When a fit that ran to its end is still not to be believed: what the weights of its own draws say."""

import math

from pushforward.training.repair import Weighing

LEAST, NATS, NEVER = 0.3, 0.05, 1e-3
"""The efficiency below which a sampler is doubted: `LEAST` in few dimensions; in many what so many nats in
each coordinate come to, which marginals hardly show; and what no number of dimensions excuses."""

APART = 0.5
"""Nats by which the teacher and the sampler may differ in `log Z`: four tenths of the mass."""


def least_efficiency(dim: int) -> float:
    """Return the efficiency below which a sampler in so many dimensions is doubted."""
    return max(NEVER, min(LEAST, math.exp(-NATS * dim)))


def doubt(dim: int, weighing: Weighing, taught: float | None) -> str:
    """Return what speaks against a sampler, or nothing.

    Its own draws cannot tell of a mode that it has lost, but the teacher's particles can: by their `log Z`,
    found in another way.
    """
    efficiency, log_z = float(weighing.efficiency), float(weighing.log_z)
    if not efficiency >= least_efficiency(dim):
        return (
            f"a share of {efficiency:.2g} of the map's draws is effective, which in {dim} dimensions should "
            f"be {least_efficiency(dim):.2g} at least."
        )
    if taught is not None and not abs(log_z - taught) <= APART:
        return (
            f"`log Z` is {log_z:.2f} by the map's draws and {taught:.2f} by the teacher's particles: one of "
            "the two may lack mass that the other has."
        )
    return ""
