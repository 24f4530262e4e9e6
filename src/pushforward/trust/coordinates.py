"""Coordinates in which the draws are roughly standard, and what the target says of them there.

A Stein identity holds in every coordinate system, so one is chosen in which no tail is heavy (the frame's
bend) and no direction wide: then averages are close to normal, and units do not matter.
"""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.host import heights, into, on_device, scores_at
from pushforward.recipe.law import frame_from_draws
from pushforward.recipe.table import Search
from pushforward.trust.settings import LIMITS

TILE = Search().tile
"""Points that the target is asked at in one go: as in a fit, whose programs then serve the check."""


class View(NamedTuple):
    """The draws in a frame, with the target's score and log density at each."""

    target: InFrame
    x: Float[np.ndarray, "n dim"]
    u: Float[np.ndarray, "n dim"]
    score: Float[np.ndarray, "n dim"]  # of the target in the frame
    log_density: Float[np.ndarray, " n"]  # of the target outside it: minus the energy


def choose_frame(draws: Float[np.ndarray, "n dim"]) -> Frame:
    """Return a frame from the draws' quantiles, whitened where there are enough of them."""
    frame = frame_from_draws(draws)
    if len(draws) >= LIMITS.whitened * draws.shape[1]:
        return frame
    return eqx.tree_at(lambda each: each.matrix, frame, on_device(np.diag(_spread(frame))))


def look(target: Target, frame: Frame, x: Float[np.ndarray, "n dim"]) -> View:
    """Return the view of the draws `x` in `frame`; scores in the frame are by the chain rule."""
    x = np.asarray(x, np.float64)
    u = into(frame, x)
    scale, bend, shift, matrix = (
        np.asarray(each, np.float64) for each in (frame.scale, frame.bend, frame.shift, frame.matrix)
    )
    v = bend * (shift + u @ matrix.T)
    slopes = scores_at(target, x, TILE) * scale * np.cosh(v) + bend * np.tanh(v)
    return View(InFrame(target, frame), x, u, slopes @ matrix, heights(target, x, TILE))


def bounded(frame: Frame, x: Float[np.ndarray, "n dim"]) -> Float[np.ndarray, "n dim"]:
    """Return each coordinate by itself: unbent, standardised, and soft-clipped.

    Means and spreads of these exist whatever the tails, and speak of one named coordinate each.
    """
    alone = eqx.tree_at(lambda each: each.matrix, frame, np.diag(_spread(frame)))
    return LIMITS.soft * np.tanh(into(alone, np.asarray(x, np.float64)) / LIMITS.soft)


def _spread(frame: Frame) -> Float[np.ndarray, " dim"]:
    return np.sqrt(np.sum(np.asarray(frame.matrix, np.float64) ** 2, axis=1))
