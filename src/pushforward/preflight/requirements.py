"""Before any training: is this a log density that can be trained on? Every complaint names a remedy."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import FunctionTarget, NamedTarget, Target
from pushforward.one_by_one import one_by_one
from pushforward.preflight.properness import find_escapes
from pushforward.probing import ROWS, check_gradient, evaluate

SCALES = (0.1, 1.0, 10.0)
BROKEN = 0.9
"""The share of points at which a gradient must be wrong to be called broken; kinks make some."""


def check_target(key: Key[Array, ""], target: Target) -> None:
    """Raise a `TypeError` or `ValueError` if `target` cannot be fitted, saying why and what to try.

    One program is compiled, and called a few times: values, gradients against differences, rays to infinity.
    """
    check_is_target(target)
    check_output(target)
    rng = np.random.default_rng(int(jax.random.bits(key, dtype=jnp.uint32)))
    scales, x = trial_points(rng, target.dim)
    seen = one_by_one(target)
    values, scores = evaluate(seen, x)
    check_values(target, values, scores)
    gradient = check_gradient(seen, x, scores, scales, rng.normal(size=x.shape))
    if gradient.share > BROKEN:
        raise ValueError(
            f"{_label(target)} has a gradient that is not its slope: it disagrees with finite differences at "
            f"{gradient.wrong} of {gradient.conclusive} points. Look for `stop_gradient`, "
            "rounding, or a custom derivative."
        )
    escapes = find_escapes(rng, seen, scores)
    if escapes:
        ways = "; ".join(escape.words for escape in escapes[:4])
        grows = any(escape.slope > 0.05 for escape in escapes)
        raise ValueError(
            f"{_label(target)} is improper: far out it {'grows' if grows else 'does not fall'} "
            f"along {ways}. No "
            "sampler can have it as its law. Check the sign, and give every parameter a proper prior."
        )


def trial_points(rng: np.random.Generator, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points at three distances from the origin, and the scale of each."""
    scales = np.repeat(SCALES, ROWS // len(SCALES))
    return scales, scales[:, None] * rng.normal(size=(ROWS, dim))


def check_is_target(target: Target) -> None:
    """Raise unless `target` is one."""
    if not isinstance(target, Target):
        hint = (
            " Wrap a plain function with `Target.from_log_density(fn, dim=...)`." if callable(target) else ""
        )
        raise TypeError(f"`target` must be a Target; got {type(target).__name__}.{hint}")


def _label(target: Target) -> str:
    what = "function" if isinstance(target, FunctionTarget) else "log density"
    return f"`target`: the {what} {target.name!r}"


def _promise(target: Target) -> str:
    return "a pytree like `example`" if isinstance(target, NamedTarget) else f"`dim={target.dim}`"


def check_output(target: Target) -> None:
    """Trace the log density once, without running it."""
    point = jax.ShapeDtypeStruct((target.dim,), jnp.result_type(float))
    try:
        out = jax.eval_shape(target.log_density, point)
    except Exception as error:
        raise ValueError(
            f"{_label(target)} failed on a point of shape ({target.dim},): {type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no message'} Check that "
            f"{_promise(target)} is what the function expects, and that it is written in JAX for one point."
        ) from error
    if not hasattr(out, "shape") or not hasattr(out, "dtype"):
        raise TypeError(f"{_label(target)} must return a scalar array; got {type(out).__name__}.")
    if out.shape != ():
        raise ValueError(
            f"{_label(target)} must return a scalar for one point of shape ({target.dim},); got shape "
            f"{out.shape}. Sum over the coordinates, and do not write it for batches."
        )
    if not jnp.issubdtype(out.dtype, jnp.floating):
        raise TypeError(
            f"{_label(target)} must return a floating-point number; got {out.dtype}, which has no gradient."
        )


def check_values(target: Target, values: np.ndarray, scores: np.ndarray) -> None:
    """Raise where values or scores at the trial points cannot be those of a density."""
    if np.isposinf(values).any():
        raise ValueError(
            f"{_label(target)} is +inf at {np.isposinf(values).sum()} of {len(values)} trial points: no "
            "density is infinite on a region. Check for log(0) or a missing minus sign."
        )
    if not np.isfinite(values).any():
        raise ValueError(
            f"{_label(target)} was not finite at any of {len(values)} trial points between {SCALES[0]} and "
            f"{SCALES[-1]} from the origin (for instance {values[0]}). If its support is narrower or "
            "elsewhere, shift and scale its argument; if it has limits, transform them to the real line."
        )
    finite = np.isfinite(values)
    broken = ~np.isfinite(scores[finite])
    if broken.all(axis=0).any():
        coordinates = np.flatnonzero(broken.all(axis=0))[:5].tolist()
        raise ValueError(
            f"{_label(target)} has a finite value but no finite gradient in coordinate(s) {coordinates} "
            "at any trial point. Look for sqrt, log or division at the edge of their domain."
        )
    flat = np.all(scores[finite] == 0, axis=0)
    if flat.all():
        raise ValueError(
            f"{_label(target)} has gradient zero everywhere it was tried: it is constant, or it leaves JAX "
            "(NumPy inside, integer rounding, `stop_gradient`). A constant is not a density on R^dim."
        )
    if flat.any():
        raise ValueError(
            f"{_label(target)} does not depend on coordinate(s) {np.flatnonzero(flat)[:5].tolist()}: "
            f"improper there. Is `dim={target.dim}` too large for the function?"
        )
