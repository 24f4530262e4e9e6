"""Moving averages of networks, and learning rates: what makes the last step a good one."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int


def moving_average(old: Any, new: Any, share: float, step: Int[Array, ""] | None = None) -> Any:
    """Return `share old + (1 - share) new`, with less of the old in the first of counted steps."""
    keep = share if step is None else jnp.minimum(share, (1.0 + step) / (10.0 + step))
    return jax.tree.map(lambda a, b: keep * a + (1.0 - keep) * b if eqx.is_inexact_array(b) else b, old, new)


def begun(kind: Callable[..., Any], net: Any, average: Any, rule: optax.GradientTransformation) -> Any:
    """Return the state in which a training begins: `kind(net, average, optimiser, step)`."""
    return kind(net, average, rule.init(eqx.filter(net, eqx.is_inexact_array)), jnp.zeros((), jnp.int32))


def descended(
    state: Any,
    loss: Callable[[Any], Array],
    rule: optax.GradientTransformation,
    share: float,
    averaged: Callable[[Any], Any] = lambda net: net,
) -> tuple[Any, Array]:
    """Return the state one step down a loss, and its value; `averaged` picks what is averaged."""
    net, average, optimiser, step = state
    value, gradient = eqx.filter_value_and_grad(loss)(net)
    updates, optimiser = rule.update(gradient, optimiser, eqx.filter(net, eqx.is_inexact_array))
    net = eqx.apply_updates(net, updates)
    average = moving_average(average, averaged(net), share, step)
    return type(state)(net, average, optimiser, step + 1), value


def rise_and_fall(rate: float, num_steps: int, *, last: float = 0.0) -> optax.Schedule:
    """Return a rate that rises over 100 steps, stays, and from 60 % of the steps falls to `last` of itself.

    Until the fall begins nothing depends on `num_steps`, so a longer run begins like a shorter one.
    """
    rise, fall = min(100, num_steps // 4 + 1), max(int(0.6 * num_steps), 1)
    return optax.join_schedules(
        [
            optax.linear_schedule(0.0, rate, rise),
            optax.constant_schedule(rate),
            optax.cosine_decay_schedule(rate, max(num_steps - fall, 1), last),
        ],
        [rise, max(fall, rise)],
    )
