"""Coordinates in which the draws are roughly standard, and what the target says of them there.

A Stein identity holds in every coordinate system, so one is chosen in which no tail is heavy (the frame's
bend) and no direction wide: then averages are close to normal, and units do not matter.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.frame import Frame, InFrame, unbent
from pushforward.recipe.law import frame_from_draws
from pushforward.trust.settings import LIMITS


class View(NamedTuple):
    """The draws in a frame, with the target's score and log density at each."""

    target: InFrame
    x: Float[Array, "n dim"]
    u: Float[Array, "n dim"]
    score: Float[Array, "n dim"]
    """Of the target in the frame."""
    log_density: Float[Array, " n"]
    """Of the target outside it: minus the energy."""


def choose_frame(draws: Float[np.ndarray, "n dim"]) -> Frame:
    """Return a frame from the draws' quantiles, whitened where there are enough of them."""
    frame = frame_from_draws(jax.device_put(draws))
    if len(draws) >= LIMITS.whitened * draws.shape[1]:
        return frame
    return eqx.tree_at(lambda each: each.matrix, frame, jnp.diag(_spread(frame)))


def look(target: Target, frame: Frame, x: Float[Array, "n dim"]) -> View:
    """Return the view of the draws `x` in `frame`."""
    inside = InFrame(target, frame)
    return View(inside, x, *_look(inside, x))


@eqx.filter_jit
def _look(inside: InFrame, x: Float[Array, "n dim"]):
    u = jax.vmap(inside.frame.inverse)(x)

    def one(point):
        value, slope = jax.value_and_grad(inside.log_density)(point)
        return slope, value - inside.frame.log_det(point)

    return (u, *jax.vmap(one)(u))


@eqx.filter_jit
def every(function: Callable[[Array], Array], x: Float[Array, "n dim"]) -> Array:
    """Return the function at every row, by one program."""
    return jax.vmap(function)(x)


@eqx.filter_jit
def bounded(frame: Frame, x: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    """Return each coordinate by itself: unbent, standardised, and soft-clipped.

    Means and spreads of these exist whatever the tails, and speak of one named coordinate each.
    """
    v = unbent((x - frame.centre) / frame.scale, frame.bend) - frame.shift
    return LIMITS.soft * jnp.tanh(v / _spread(frame) / LIMITS.soft)


def _spread(frame: Frame) -> Float[Array, " dim"]:
    return jnp.sqrt(jnp.sum(frame.matrix**2, axis=1))
