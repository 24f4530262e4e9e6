"""Before any training: can this log density be trained on? Every complaint names a remedy."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from jaxtyping import Array, Key

from pushforward.base import FunctionTarget, NamedTarget, Target
from pushforward.operations import one_by_one
from pushforward.preflight.properness import Escape, find_escapes
from pushforward.probing import ROWS, GradientCheck, check_gradient, evaluate
from pushforward.recipe.host import generator

GOOD, CAUTION, BAD = "good", "caution", "bad"
SCALES = (0.1, 1.0, 10.0)
"""Distances from the origin at which the density is tried."""

BROKEN = 0.9
"""The share of points at which a gradient must be wrong to be called broken; kinks make some."""


@dataclass(frozen=True)
class Finding:
    """What one check of a target has found."""

    what: str
    verdict: str
    words: str
    refusal: Exception | None = field(default=None, repr=False, compare=False)
    """What `fit` raises of a finding that is `bad`."""


def require_target(key: Key[Array, ""], target: Target) -> None:
    """Raise a `TypeError` or `ValueError` if `target` cannot be fitted, saying why and what to try.

    One program is compiled, and called a few times: values, gradients against differences, rays to infinity.
    """
    for finding in checks(generator(key), target):
        if finding.refusal is not None:
            raise finding.refusal


def checks(rng: np.random.Generator, target: Target) -> Iterator[Finding]:
    """Yield what `fit` asks of a target; nothing more once a finding leaves the rest without sense."""
    if not isinstance(target, Target):
        hint = (
            " Make one of a function with `Target.from_log_density(fn, dim=...)`, or of a NumPyro model with "
            "`from_numpyro(model)`."
        )
        hint = hint if callable(target) else ""
        raise TypeError(f"`target` must be a Target; got {type(target).__name__}.{hint}")
    try:
        dtype = _output_type(target)
    except (ValueError, TypeError) as error:
        yield _refused("output", error)
        return
    if words := _index_beyond(target):
        yield _refused("output", ValueError(f"{_label(target)} {words}"))
        return
    if jnp.finfo(dtype).bits < 32:
        yield Finding("output", CAUTION, f"{dtype}: too coarse for a log density; compute it in float32")
    else:
        yield Finding("output", GOOD, f"a scalar, {dtype}")
    seen = one_by_one(target)
    scales, x = trial_points(rng, target.dim)
    values, scores = evaluate(seen, x)
    finite = _finite(target, values, scores)
    yield finite
    if finite.verdict == BAD:
        return
    yield _gradient(target, check_gradient(seen, x, scores, scales, rng.normal(size=x.shape)))
    yield _proper(target, find_escapes(rng, seen, scores))


def trial_points(rng: np.random.Generator, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points at three distances from the origin, and the scale of each."""
    scales = np.repeat(SCALES, ROWS // len(SCALES))
    return scales, scales[:, None] * rng.normal(size=(ROWS, dim))


def _refused(what: str, error: Exception) -> Finding:
    return Finding(what, BAD, str(error).removeprefix("`target`: "), error)


def _label(target: Target) -> str:
    what = "function" if isinstance(target, FunctionTarget) else "log density"
    return f"`target`: the {what} {target.name!r}"


def _output_type(target: Target) -> np.dtype:
    """Trace the log density once, without running it, and return its type."""
    point = jax.ShapeDtypeStruct((target.dim,), jnp.result_type(float))
    try:
        out = jax.eval_shape(target.log_density, point)
    except Exception as error:
        promise = "a pytree like `example`" if isinstance(target, NamedTarget) else f"`dim={target.dim}`"
        raise ValueError(
            f"{_label(target)} failed on a point of shape ({target.dim},): {type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no message'} Check that "
            f"{promise} is what the function expects, and that it is written in JAX for one point: `jnp` and "
            "`jax.scipy` in place of NumPy, SciPy, `math` and PyTorch, `jnp.where` in place of `if`."
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
    return out.dtype


def _index_beyond(target: Target) -> str:
    """Return what to say of an index beyond an array, where JAX would take the last element in silence."""
    try:
        checked = checkify.checkify(target.log_density, errors=checkify.index_checks)
        message = jax.jit(checked)(np.zeros(target.dim, jnp.result_type(float)))[0].get()
    except Exception:
        return ""
    if not message:
        return ""
    told = message.splitlines()[0].rstrip(". ")
    return (
        f"uses an index beyond the end of an array: {told}. JAX takes the last element instead, in silence. "
        f"Is `dim={target.dim}` too small for the function?"
    )


def _finite(target: Target, values: np.ndarray, scores: np.ndarray) -> Finding:
    if complaint := _cannot_be(target, values, scores):
        return _refused("finite", ValueError(f"{_label(target)} {complaint}"))
    share = np.mean(np.isfinite(values) & np.isfinite(scores).all(axis=1))
    words = f"at {share:.0%} of {len(values)} points between {SCALES[0]:g} and {SCALES[-1]:g} from the origin"
    return Finding("finite", GOOD if share > 0.5 else CAUTION, words)


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
            "elsewhere, shift and scale its argument. If it has limits, name them: `from_log_density(fn, "
            'example={"x": 1.0}, constraints={"x": ("interval", a, b)})`.'
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
            "(NumPy inside, integer rounding, `stop_gradient`). A constant is not a density on R^dim."
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


def _gradient(target: Target, found: GradientCheck) -> Finding:
    if found.conclusive == 0:
        return Finding("gradient", CAUTION, "differences are lost in rounding at every point: cannot tell")
    right = f"{found.conclusive - found.wrong} of {found.conclusive}"
    words = f"agrees with finite differences at {right} points that can tell"
    if found.share <= BROKEN:
        return Finding("gradient", CAUTION if found.share > 0.1 else GOOD, words)
    refusal = ValueError(
        f"{_label(target)} has a gradient that is not its slope: it disagrees with finite differences at "
        f"{found.wrong} of {found.conclusive} points. Look for `stop_gradient`, "
        "rounding, or a custom derivative."
    )
    return Finding("gradient", BAD, words, refusal)


def _proper(target: Target, slow: list[Escape]) -> Finding:
    if rising := [escape for escape in slow if not escape.falls]:
        worst = sorted(rising, key=lambda escape: -escape.slope)
        how = "grows" if worst[0].slope > 0.05 else "does not fall"
        refusal = ValueError(
            f"{_label(target)} is improper: far out it {how} along "
            f"{'; '.join(escape.words for escape in rising[:4])}. No "
            "sampler can have it as its law. Check the sign, and give every parameter a proper prior."
        )
        words = f"far out it {how} along {'; '.join(escape.words for escape in worst[:3])}"
        return Finding("proper", BAD, words, refusal)
    if axes := [escape.words for escape in slow if "infinity" in escape.words]:
        words = f"falls more slowly than 1/r along {'; '.join(axes[:3])}: perhaps not integrable"
        return Finding("proper", CAUTION, words)
    return Finding("proper", GOOD, "falls along every way to infinity that was tried")
