"""Any algorithm on a target with data, on a fresh minibatch in every step."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count
from pushforward.frame import InFrame


def minibatched(build: Callable[[Target], Algorithm], target: Any, size: int) -> Algorithm:
    """Return `build(target)` with each step taken on another `target.minibatch(key, size)`.

    **Arguments:**

    - `build`: makes the algorithm of a target, such as `eqx.Partial(svgd.algorithm, num_particles=100)`.
        It is called while a step is traced; what it binds must be a pytree, or arrays become constants.
    - `target`: has `minibatch(key, size)`, or is an `InFrame` of a target that has.
    - `size`: rows a step.
    """
    whole = build(target)
    step = eqx.Partial(_step, build, target, check_count(size, "size"))
    return Algorithm(init=whole.init, step=step, sample=whole.sample)


def minibatch_of(target: Any, key: Key[Array, ""], size: int) -> Target:
    """Return a minibatch, in the target's own frame if it is seen through one."""
    if isinstance(target, InFrame):
        return InFrame(minibatch_of(target.target, key, size), target.frame)
    return target.minibatch(key, size)


def _step(
    build: Callable[[Target], Algorithm], target: Any, size: int, key: Key[Array, ""], state: Any
) -> tuple[Any, dict[str, Any]]:
    key_rows, key_step = jax.random.split(key)
    return build(minibatch_of(target, key_rows, size)).step(key_step, state)
