"""How good a fresh sampler is: its KSD and, where the truth can be drawn, sliced W2, beside their floors."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import ExactTarget, Target
from pushforward.metrics import PROTOCOLS, floor
from pushforward.sampler import Sampler

NUM_DRAWS = {"ksd_imq_v": 500, "sliced_w2": 20_000}
"""The KSD's cost grows with the square; the sliced W2 needs many draws to see past its own noise."""

Judgement = dict[str, dict[str, Any]]


def judge(
    key: Key[Array, ""], sampler: Sampler, target: Target, *, repeats: int = 5, floor_repeats: int = 10
) -> Judgement:
    """Return each metric's mean and spread over fresh draws, and what exact draws score."""
    exact = target if isinstance(target, ExactTarget) else None
    found: Judgement = {}
    for metric, n in NUM_DRAWS.items():
        key, key_draws, key_metric, key_floor = jax.random.split(key, 4)
        if exact is None and metric != "ksd_imq_v":
            continue
        draws = sampler.sample(key_draws, n * repeats).reshape(repeats, n, sampler.dim)
        if not bool(np.isfinite(draws).all()):
            found[metric] = {"value": None, "n": n, "repeats": repeats}
            continue
        protocol: Any = PROTOCOLS[metric]
        keys = jax.random.split(key_metric, repeats)
        values = [float(protocol(k, x, target)) for k, x in zip(keys, draws, strict=True)]
        found[metric] = {
            "value": float(np.mean(values)),
            "spread": float(np.std(values, ddof=1)),
            "n": n,
            "repeats": repeats,
        }
        if exact is not None:
            bottom = floor(key_floor, metric, exact, n, floor_repeats)
            found[metric] |= {"floor": bottom.mean, "floor_spread": bottom.sd}
    return found
