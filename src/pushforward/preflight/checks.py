"""Before any training: can this log density be trained on? Every complaint names a remedy."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.operations import one_by_one
from pushforward.preflight.declaring import coordinate_names, declaration
from pushforward.preflight.declaring import told as told_of
from pushforward.preflight.periods import period
from pushforward.preflight.properness import RAYS, Escape, find_escapes, summits_of
from pushforward.preflight.support import find_support, inner_points
from pushforward.preflight.tracing import label, output_type, run_checked
from pushforward.probing import ROWS, GradientCheck, check_gradient, evaluate
from pushforward.recipe.host import generator

GOOD, CAUTION, BAD = "good", "caution", "bad"
SCALES = (0.1, 1.0, 10.0)
"""Distances from the origin at which the density is tried."""

COARSE = 0.5
"""Nats between neighbouring log densities, beyond which shape is lost; a tenth of it is worth a word."""

DEAR = 1e-3
"""Seconds a point, from which on a fit takes hours."""

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
    warning: str = ""
    """What `fit` warns of."""


def require_target(key: Key[Array, ""], target: Target) -> None:
    """Raise a `TypeError` or `ValueError` if `target` cannot be fitted, saying why and what to try.

    Two programs are compiled: the one is called once, the other gives values and scores at many points. What
    may be fitted, though it seldom ends well, is told by a warning.
    """
    for finding in checks(generator(key), target):
        if finding.refusal is not None:
            raise finding.refusal
        if finding.warning:
            warnings.warn(finding.warning, stacklevel=4)


def checks(rng: np.random.Generator, target: Target) -> Iterator[Finding]:
    """Yield what `fit` asks of a target; nothing more once a finding leaves the rest without sense."""
    if not isinstance(target, Target):
        hint = (
            " Make one of a function with `Target.from_log_density(fn, dim=...)`, or of a NumPyro model with "
            "`from_numpyro(model)`."
        )
        hint = hint if callable(target) else ""
        if type(target).__module__.startswith("pymc"):
            hint = " Make one with `from_pymc(model)`."
        raise TypeError(f"`target` must be a Target; got {type(target).__name__}.{hint}")
    try:
        dtype, told = output_type(target)
    except (ValueError, TypeError) as error:
        yield Finding("output", BAD, str(error).removeprefix("`target`: "), error)
        return
    scales, x = trial_points(rng, target.dim)
    beyond, once = run_checked(target, x[0])
    if beyond:
        yield _refused(target, "output", beyond)
        return
    yield _output(target, dtype, told)
    seen = one_by_one(target)
    values, scores = evaluate(seen, x)
    started = time.perf_counter()
    again = evaluate(seen, x)[0]
    yield _cost(target, (time.perf_counter() - started) / ROWS)
    if words := _noise(values, again, once):
        yield _refused(target, "output", words)
        return
    shape = _support(rng, seen, target, x, values)
    yield shape
    if shape.verdict == BAD:
        return
    if (finite := _finite(target, values, scores)).verdict == BAD:
        yield finite
        return
    yield finite
    if (precision := _precision(rng, seen, target, values)).verdict == BAD:
        yield precision
        return
    yield precision
    yield _gradient(target, check_gradient(rng, seen, x, scores, scales))
    yield _proper(seen, target, find_escapes(rng, seen, scores), x)


def trial_points(rng: np.random.Generator, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points at three distances from the origin, and the scale of each."""
    scales = np.repeat(SCALES, ROWS // len(SCALES))
    return scales, scales[:, None] * rng.normal(size=(ROWS, dim))


def _refused(target: Target, what: str, words: str, remedy: str = "") -> Finding:
    said = f"{words}. {remedy}" if remedy else words
    return Finding(what, BAD, said, ValueError(f"{label(target)} {said}"))


def _warned(target: Target, what: str, words: str) -> Finding:
    return Finding(what, CAUTION, words, warning=f"{label(target)} {words}")


def _output(target: Target, dtype: np.dtype, told: str) -> Finding:
    if jnp.finfo(dtype).bits < 32:
        words = f"returns {dtype}, too coarse for a log density: compute it in float32."
        return _warned(target, "output", words)
    if told:
        words = (
            "asks for float64, and JAX computes it in float32. For double precision write "
            '`jax.config.update("jax_enable_x64", True)` before anything else; otherwise ask for float32.'
        )
        return _warned(target, "output", words)
    return Finding("output", GOOD, f"a scalar, {dtype}")


def _cost(target: Target, each: float) -> Finding:
    words = f"{1e6 * each:.3g} microseconds a point for value and gradient, {ROWS} at once"
    if each < DEAR:
        return Finding("cost", GOOD, words)
    words = f"takes {words}, and a fit asks at millions of points. Write it in `jnp`, without callbacks."
    return _warned(target, "cost", words)


def _noise(values: np.ndarray, again: np.ndarray, once: float) -> str:
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


def _support(
    rng: np.random.Generator, seen: Target, target: Target, x: np.ndarray, values: np.ndarray
) -> Finding:
    """Say where the density ends, unless that is nowhere."""
    if not np.isfinite(values).any():
        x = inner_points(rng, target.dim)
        values = evaluate(seen, x)[0]
    found = find_support(rng, seen, x, values) if np.isfinite(values).any() else None
    if found is None:
        return Finding("support", GOOD, "no bound or hole was seen")
    what, remedy = told_of(target, found)
    if found.sharp and remedy.startswith("Write"):
        return _refused(target, "support", f"{what}, where the density is not small", remedy)
    return _warned(target, "support", f"{what}. {remedy}")


def _precision(rng: np.random.Generator, seen: Target, target: Target, values: np.ndarray) -> Finding:
    """Say how finely log densities can be told apart where they are highest."""
    eps = float(np.finfo(values.dtype).eps)
    step = eps * abs(float(values[np.isfinite(values)].max()))
    if step > COARSE / 10:
        # Far from its mass a density may be as low as it likes.
        height = summits_of(jax.random.key(rng.integers(2**31)), seen)[1][0]
        step = min(step, eps * abs(float(height))) if np.isfinite(height) else step
    words = f"{values.dtype} tells log densities apart that differ by {step:.1g}"
    if step <= COARSE / 10:
        return Finding("precision", GOOD, words)
    remedy = (
        "Subtract a constant inside the function before terms are added up, such as each term at a typical "
        'point; or compute in double precision, `jax.config.update("jax_enable_x64", True)`.'
    )
    said = f"is so large that {words} or more: its shape is lost in rounding"
    return (
        _refused(target, "precision", said, remedy)
        if step > COARSE
        else _warned(target, "precision", f"{said}. {remedy}")
    )


def _finite(target: Target, values: np.ndarray, scores: np.ndarray) -> Finding:
    if complaint := _cannot_be(target, values, scores):
        return _refused(target, "finite", complaint)
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


def _gradient(target: Target, found: GradientCheck) -> Finding:
    if found.conclusive == 0:
        return Finding("gradient", CAUTION, "differences are lost in rounding at every point: cannot tell")
    right = f"{found.conclusive - found.wrong} of {found.conclusive}"
    words = f"agrees with finite differences at {right} points that can tell"
    remedy = "Look for `stop_gradient`, rounding, or a custom derivative"
    if found.share > BROKEN:
        return _refused(
            target,
            "gradient",
            "has a gradient that is not its slope: it disagrees with finite differences at "
            f"{found.wrong} of {found.conclusive} points. {remedy}.",
        )
    if found.off:
        where = found.where or "everywhere"
        how = f"has a gradient that is not its slope: it is {found.off:+.1%} off {where}. {remedy}."
        return _refused(target, "gradient", how)
    return Finding("gradient", CAUTION if found.share > 0.1 else GOOD, words)


def _proper(seen: Target, target: Target, slow: list[Escape], x: np.ndarray) -> Finding:
    base = x[len(x) // 2]
    axes = sorted({escape.axis for escape in slow if escape.axis >= 0})
    if periods := {axis: each for axis in axes if (each := period(seen, base, axis))}:
        high = np.full(target.dim, np.inf)
        high[list(periods)] = [0.5 * each for each in periods.values()]
        names = coordinate_names(target)
        often = ", ".join(f"{names[i]} (period {each:.6g})" for i, each in periods.items())
        said = f"repeats itself without end along {often}, so that it is improper. Take one period of it"
        return _refused(target, "proper", said, declaration(target, -high, high))
    if rising := [escape for escape in slow if not escape.falls]:
        worst = sorted(rising, key=lambda escape: -escape.slope)
        how = "grows" if worst[0].slope > 0.05 else "does not fall"
        how = "falls too slowly" if worst[0].slope < RAYS.flat else how
        ways = "; ".join(escape.words for escape in worst[:4])
        said = f"is improper: far out it {how} along {ways}"
        return _refused(
            target,
            "proper",
            said,
            "No sampler can have it as its law. Check the sign, and give every parameter a proper prior.",
        )
    if axes := [escape.words for escape in slow if "infinity" in escape.words]:
        words = f"falls more slowly than 1/r along {'; '.join(axes[:3])}: perhaps not integrable"
        return Finding("proper", CAUTION, words)
    return Finding("proper", GOOD, "falls along every way to infinity that was tried")
