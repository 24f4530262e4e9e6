"""Before any training: can this log density be trained on? Every complaint names a remedy."""

import warnings
from collections.abc import Iterator
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Target
from pushforward.host import generator
from pushforward.operations import one_by_one
from pushforward.preflight.declaring import coordinate_names, declaration
from pushforward.preflight.declaring import told as told_of
from pushforward.preflight.findings import (
    BAD,
    CAUTION,
    GOOD,
    SCALES,
    WARNED,
    Finding,
    Said,
    cost,
    finding,
    finite,
    noise,
    output,
)
from pushforward.preflight.properness import RAYS, Escape, find_escapes, period, summits_of
from pushforward.preflight.support import find_support, inner_points
from pushforward.preflight.tracing import output_type, run_checked
from pushforward.probing import ROWS, GradientCheck, check_gradient, evaluate, seconds_a_look

COARSE = 0.5
"""Nats between neighbouring log densities, beyond which shape is lost; a tenth of it is worth a word."""

BROKEN = 0.9  # the share of points at which a gradient must be wrong to be called broken; kinks make some


def require_target(key: Key[Array, ""], target: Target) -> None:
    """Raise a `TypeError` or `ValueError` if `target` cannot be fitted, saying why and what to try.

    Two programs are compiled: the one is called once, the other gives values and scores at many points. What
    may be fitted, though it seldom ends well, is told by a warning.
    """
    for each in checks(generator(key), target):
        if each.refusal is not None:
            raise each.refusal
        if each.warning:
            warnings.warn(each.warning, stacklevel=4)


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
    for each in _findings(rng, target):
        yield each
        if each.verdict == BAD:
            return


def _findings(rng: np.random.Generator, target: Target) -> Iterator[Finding]:
    """Yield all findings; each after a bad one may be without sense."""
    say = partial(finding, target)
    try:
        dtype, told = output_type(target)
    except (ValueError, TypeError) as error:
        yield Finding("output", BAD, str(error).removeprefix("`target`: "), error)
        return
    scales, x = trial_points(rng, target.dim)
    beyond, once = run_checked(target, x[0])
    yield say("output", *((BAD, beyond) if beyond else output(dtype, told)))
    seen = one_by_one(target)
    values, scores = evaluate(seen, x)
    if words := noise(values, evaluate(seen, x)[0], once):
        yield say("output", BAD, words)
    yield say("cost", *cost(seconds_a_look(seen, x)))
    yield say("support", *_support(rng, seen, target, x, values))
    yield say("finite", *finite(target, values, scores))
    yield say("precision", *_precision(rng, seen, values))
    yield say("gradient", *_gradient(check_gradient(rng, seen, x, scores, scales)))
    yield say("proper", *_proper(seen, target, find_escapes(rng, seen, scores), x[len(x) // 2]))


def trial_points(rng: np.random.Generator, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points at three distances from the origin, and the scale of each."""
    scales = np.repeat(SCALES, ROWS // len(SCALES))
    return scales, scales[:, None] * rng.normal(size=(ROWS, dim))


def _support(
    rng: np.random.Generator, seen: Target, target: Target, x: np.ndarray, values: np.ndarray
) -> Said:
    """Say where the density ends, unless that is nowhere."""
    if not np.isfinite(values).any():
        x = inner_points(rng, target.dim)
        values = evaluate(seen, x)[0]
    found = None
    if np.isfinite(values).any() and not np.isposinf(values).any():
        found = find_support(rng, seen, x, values)
    if found is None:
        return GOOD, "no bound or hole was seen"
    what, remedy = told_of(target, found)
    if found.sharp and remedy.startswith("Write"):
        return BAD, f"{what}, where the density is not small. {remedy}"
    return WARNED, f"{what}. {remedy}"


def _precision(rng: np.random.Generator, seen: Target, values: np.ndarray) -> Said:
    """Say how finely log densities can be told apart where they are highest."""
    eps = float(np.finfo(values.dtype).eps)
    step = eps * abs(float(values[np.isfinite(values)].max()))
    if step > COARSE / 10:
        # Far from its mass a density may be as low as it likes.
        height = summits_of(jax.random.key(rng.integers(2**31)), seen)[1][0]
        step = min(step, eps * abs(float(height))) if np.isfinite(height) else step
    words = f"{values.dtype} tells log densities apart that differ by {step:.1g}"
    if step <= COARSE / 10:
        return GOOD, words
    return BAD if step > COARSE else WARNED, (
        f"is so large that {words} or more: its shape is lost in rounding. Subtract a constant inside the "
        "function before terms are added up, such as each term at a typical point; or compute in double "
        'precision, `jax.config.update("jax_enable_x64", True)`.'
    )


def _gradient(found: GradientCheck) -> Said:
    if found.conclusive == 0:
        return CAUTION, "differences are lost in rounding at every point: cannot tell"
    if found.share > BROKEN or found.off:
        how = f"it is {found.off:+.1%} off {found.where or 'everywhere'}"
        if found.share > BROKEN:
            how = f"it disagrees with finite differences at {found.wrong} of {found.conclusive} points"
        remedy = "Look for `stop_gradient`, rounding, or a custom derivative"
        return BAD, f"has a gradient that is not its slope: {how}. {remedy}."
    right = f"{found.conclusive - found.wrong} of {found.conclusive}"
    words = f"agrees with finite differences at {right} points that can tell"
    return CAUTION if found.share > 0.1 else GOOD, words


def _proper(seen: Target, target: Target, slow: list[Escape], base: np.ndarray) -> Said:
    axes = sorted({escape.axis for escape in slow if escape.axis >= 0})
    if periods := {axis: each for axis in axes if (each := period(seen, base, axis))}:
        high = np.full(target.dim, np.inf)
        high[list(periods)] = [0.5 * each for each in periods.values()]
        names = coordinate_names(target)
        often = ", ".join(f"{names[i]} (period {each:.6g})" for i, each in periods.items())
        said = f"repeats itself without end along {often}, so that it is improper. Take one period of it"
        return BAD, f"{said}. {declaration(target, -high, high)}"
    if rising := sorted((each for each in slow if not each.falls), key=lambda each: -each.slope):
        how = "grows" if rising[0].slope > 0.05 else "does not fall"
        how = "falls too slowly" if rising[0].slope < RAYS.flat else how
        return BAD, (
            f"is improper: far out it {how} along {'; '.join(escape.words for escape in rising[:4])}. No "
            "sampler can have it as its law. Check the sign, and give every parameter a proper prior."
        )
    if ways := [escape.words for escape in slow if "infinity" in escape.words]:
        return CAUTION, f"falls more slowly than 1/r along {'; '.join(ways[:3])}: perhaps not integrable"
    return GOOD, "falls along every way to infinity that was tried"
