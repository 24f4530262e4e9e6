"""What a look at a target has found: its words, and what the values at a few points say of it."""

from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

from pushforward.base import Target
from pushforward.preflight.tracing import label
from pushforward.probing import ROWS

GOOD, CAUTION, BAD = "good", "caution", "bad"
WARNED = "warned"  # a caution that `fit` warns of
Said = tuple[str, str]  # a verdict and its words
SCALES = (0.1, 1.0, 10.0)  # distances from the origin at which the density is tried
DEAR = 2e-3  # seconds a point, from which on a fit takes hours


@dataclass(frozen=True)
class Finding:
    """What one check of a target has found."""

    what: str
    verdict: str
    words: str
    refusal: Exception | None = field(default=None, repr=False, compare=False)
    """What `fit` raises of a finding that is `bad`."""
    warning: str = ""
    """What `fit` warns of."""


def finding(target: Target, what: str, verdict: str, words: str) -> Finding:
    """Return a finding; `fit` raises what is bad, and warns where the verdict is `WARNED`."""
    said = f"{label(target)} {words}"
    if verdict == WARNED:
        return Finding(what, CAUTION, words, warning=said)
    return Finding(what, verdict, words, ValueError(said) if verdict == BAD else None)


def output(dtype: np.dtype, told: str) -> Said:
    """Say what the function returns, and whether it asked for what JAX does not give."""
    if jnp.finfo(dtype).bits < 32:
        return WARNED, f"returns {dtype}, too coarse for a log density: compute it in float32."
    if told:
        return WARNED, (
            "asks for float64, and JAX computes it in float32. For double precision write "
            '`jax.config.update("jax_enable_x64", True)` before anything else; otherwise ask for float32.'
        )
    return GOOD, f"a scalar, {dtype}"


def cost(each: float) -> Said:
    """Say what a look costs."""
    words = f"{1e6 * each:.3g} microseconds a point for value and gradient, {ROWS} at once"
    if each < DEAR:
        return GOOD, words
    return (
        WARNED,
        f"takes {words}, and a fit asks at millions of points. Write it in `jnp`, without callbacks.",
    )


def noise(values: np.ndarray, again: np.ndarray, once: float) -> str:
    """Return what to say of a function whose value at a point changes from call to call."""
    first, second = float(values[0]), float(again[0])
    changed = np.isfinite(values) & np.isfinite(again) & (values != again)
    if changed.any():
        first, second = float(values[changed][0]), float(again[changed][0])
    elif np.isfinite(first) and np.isfinite(once) and abs(once - first) > 1e-3 * (1.0 + abs(first)):
        # Programs of the same function round differently, but not by so much.
        second = once
    else:
        return ""
    return (
        f"changes from call to call: at one and the same point it was {first:.7g} and {second:.7g}. A "
        "density must be a function: draw random numbers once, outside of it, and use all data."
    )


def finite(target: Target, values: np.ndarray, scores: np.ndarray) -> Said:
    """Say at how many points values and scores can be those of a density."""
    if complaint := _cannot_be(target, values, scores):
        return BAD, complaint
    share = np.mean(np.isfinite(values) & np.isfinite(scores).all(axis=1))
    words = f"at {share:.0%} of {len(values)} points between {SCALES[0]:g} and {SCALES[-1]:g} from the origin"
    return GOOD if share > 0.5 else CAUTION, words


def _cannot_be(target: Target, values: np.ndarray, scores: np.ndarray) -> str | None:
    """Return why the values or scores at the trial points cannot be those of a density."""
    if np.isposinf(values).any():
        return (
            f"is +inf at {np.isposinf(values).sum()} of {len(values)} trial points: no "
            "density is infinite on a region. Check for log(0) or a missing minus sign."
        )
    finite = np.isfinite(values)
    if not finite.any():
        return (
            f"was not finite at any of {len(values)} trial points between {SCALES[0]} and "
            f"{SCALES[-1]} from the origin (for instance {values[0]}). If its support is narrower or "
            "elsewhere, shift and scale its argument. If it has limits, name them: "
            f"`from_log_density(fn, dim={target.dim}, bounds=(low, high))`."
        )
    broken = np.all(~np.isfinite(scores[finite]), axis=0)
    if broken.any():
        return (
            f"has a finite value but no finite gradient in {_coordinates(target, broken)} at any trial "
            "point. Look for sqrt, log or division at the edge of their domain."
        )
    flat = np.all(scores[finite] == 0, axis=0)
    if flat.all():
        return (
            "has gradient zero everywhere it was tried: it is constant, or it leaves JAX "
            "(integer rounding, `stop_gradient`), or it changes on a scale far larger than "
            f"{SCALES[-1]:g}: divide its argument by that scale. A constant is not a density on R^dim."
        )
    if flat.any():
        remedy = f"Is `dim={target.dim}` too large for the function?"
        if target.parameters is not None:
            remedy = "Use them in the density, or leave them out of it."
        return f"does not depend on {_coordinates(target, flat)}: improper there. {remedy}"
    return None


def _coordinates(target: Target, chosen: np.ndarray) -> str:
    """Return the first few of the chosen coordinates, by the model's own names where it has some."""
    places = np.flatnonzero(chosen)[:5].tolist()
    if target.parameters is None:
        return f"coordinate(s) {places}"
    return ", ".join(target.parameters.coordinate_names()[place] for place in places)
