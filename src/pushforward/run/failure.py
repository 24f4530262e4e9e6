"""Why a fit broke, in words that say what to do."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.training.outcome import Outcome


def why_broken(key: Key[Array, ""], target: Target, done: Any, why: str) -> str:
    """Return the message of the error that a broken fit raises.

    Of one that diverged, it names the coordinates in which the target broke at the last finite draws.
    """
    step = done.history[-1]["step"] if done.history else 0
    if done.outcome is not Outcome.DIVERGED:
        # What was raised, without asking the target again.
        return f"{done.outcome.value} (after step {step}): {why} `error.fit.sampler` holds it."
    x = done.sampler.sample(key, 1024)
    broken = ~np.isfinite(jax.vmap(target.score)(x))
    where = "the target is finite at the last good draws, so the step itself overflowed"
    if broken.any():
        coordinates = np.flatnonzero(broken.any(axis=0))[:5].tolist()
        where = f"the target's score is not finite in coordinate(s) {coordinates}"
    bad = np.flatnonzero(~np.isfinite(jax.vmap(target.log_density)(x)) | broken.any(axis=1))
    example = f" For instance at x = {np.asarray(x[bad[0]])[:5].tolist()}." if bad.size else ""
    return (
        f"{done.outcome.value} (step {step}): {where}.{example} Try a smaller `learning_rate`, or mend the "
        "log density there; `error.fit.sampler` holds the last finite sampler."
    )
