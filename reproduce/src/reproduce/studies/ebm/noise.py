"""What all trainings share: noise levels and their loss, moving averages, learning rates."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, UInt8

Image = Float[Array, "height width 1"]
Batch = Float[Array, "n height width 1"]


def levels(key: Key[Array, ""], n: int, low: float, high: float) -> Float[Array, " n"]:
    """Return `n` noise levels, log-uniform on `[low, high]`, one in each of `n` equal parts."""
    share = (jnp.arange(n) + jax.random.uniform(key, (n,))) / n
    return low * (high / low) ** share


def minibatch(key: Key[Array, ""], pixels: UInt8[Array, "images height width"], n: int) -> Batch:
    """Return `n` images chosen with replacement, as numbers from 0 to 1."""
    chosen = jax.random.randint(key, (n,), 0, pixels.shape[0])
    return pixels[chosen].astype(jnp.float32)[..., None] / 255.0


def noisy(
    key: Key[Array, ""], x: Batch, low: float, high: float
) -> tuple[Batch, Batch, Float[Array, "n 1 1 1"]]:
    """Return `x + sigma eps`, `eps` and `sigma`."""
    key_sigma, key_eps = jax.random.split(key)
    sigma = levels(key_sigma, x.shape[0], low, high)[:, None, None, None]
    eps = jax.random.normal(key_eps, x.shape)
    return x + sigma * eps, eps, sigma


def denoising_loss(
    slope: Callable[[Image], Image], noised: Batch, eps: Batch, weight: Float[Array, "n 1 1 1"] | float = 1.0
) -> Float[Array, ""]:
    """Return `mean weight |slope(x + sigma eps) - eps|^2`: denoising score matching of `-slope / sigma`."""
    return jnp.mean(weight * (jax.vmap(slope)(noised) - eps) ** 2)


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
