"""From what a user writes for a constraint to a `Parameter`: a word, a tuple, or NumPyro's own."""

import math
from typing import Any

import numpy as np

from pushforward.checks import check_choice
from pushforward.parameters.kinds import KINDS
from pushforward.parameters.record import Bound, Parameter

EXAMPLES = "'positive', ('interval', 0, 1), 'simplex', or one of NumPyro's"

_ALIASES = {
    "nonnegative": "positive", "lower": "greater_than", "upper": "less_than", "ordered_vector": "ordered",
    "positive_ordered_vector": "positive_ordered", "cholesky": "lower_cholesky",
    "cholesky_corr": "corr_cholesky", "correlation_cholesky": "corr_cholesky", "correlation": "corr_matrix",
    "covariance": "positive_definite", "positive_semidefinite": "positive_definite",
    "real_vector": "real", "real_matrix": "real",
}  # fmt: skip
"""Other words for kinds."""

_NUMPYRO = {
    "_Real": "real", "_RealVector": "real", "_RealMatrix": "real", "_Positive": "positive",
    "_Nonnegative": "positive", "_SoftplusPositive": "softplus_positive", "_GreaterThan": "greater_than",
    "_GreaterThanEq": "greater_than", "_LessThan": "less_than", "_LessThanEq": "less_than",
    "_Interval": "interval", "_OpenInterval": "interval", "_Circular": "interval",
    "_UnitInterval": "unit_interval", "_Simplex": "simplex", "_OrderedVector": "ordered",
    "_PositiveOrderedVector": "positive_ordered", "_ZeroSum": "zero_sum", "_L1Ball": "l1_ball",
    "_CorrCholesky": "corr_cholesky", "_CorrMatrix": "corr_matrix", "_LowerCholesky": "lower_cholesky",
    "_PositiveDefinite": "positive_definite", "_PositiveSemiDefinite": "positive_definite",
}  # fmt: skip
"""NumPyro's classes by name, so that they are read without importing them."""


def read_constraint(
    name: str, shape: tuple[int, ...], spec: Any, dims: tuple[str, ...] | None = None
) -> Parameter:
    """Return the parameter that a constraint of `name` means, or say what is wrong with it."""
    spec = "real" if spec is None else spec
    word, *constants = spec if isinstance(spec, tuple | list) and spec else (spec,)
    if isinstance(word, str):
        return _parameter(name, shape, word, constants, dims)
    if any(base.__module__.startswith("numpyro") for base in type(spec).__mro__):
        return _from_numpyro(name, shape, spec, dims)
    raise TypeError(
        f"`constraints`: that of {name!r} must be, for instance, {EXAMPLES}; got {spec!r} "
        f"({type(spec).__name__})."
    )


_NAMED = {(None, None): "real", (0.0, None): "positive", (0.0, 1.0): "unit_interval"}
"""Limits that have kinds of their own."""


def limits(name: str, shape: tuple[int, ...], low: Any, high: Any, dims: Any = None) -> Parameter:
    """Return a parameter between `low` and `high`, where an infinite one is none."""
    low, high = _limit(name, shape, low, -np.inf), _limit(name, shape, high, np.inf)
    if (low, high) in _NAMED:
        return Parameter(name, shape, _NAMED[low, high], dims=dims)
    kind = "greater_than" if high is None else "less_than" if low is None else "interval"
    if any(isinstance(side, tuple) and None in side for side in (low, high)):
        # Coordinates that differ in which limits they have.
        kind, (low, high) = "box", (_each(side, shape) for side in (low, high))
    return Parameter(name, shape, kind, low=low, high=high, dims=dims)


def _parameter(name: str, shape: tuple[int, ...], word: str, constants: list[Any], dims: Any) -> Parameter:
    words = {**{kind: kind for kind in KINDS}, **_ALIASES}
    kind = words[check_choice(word, f"constraints[{name!r}]", words)]
    sides = KINDS[kind].constants
    if len(constants) != (wanted := len(sides)):
        example = {1: f"('{word}', 0.0)", 2: f"('{word}', 0.0, 1.0)"}.get(wanted, f"'{word}'")
        raise ValueError(
            f"`constraints`: {word!r} of {name!r} takes {wanted} number(s), as in {example}; "
            f"got {len(constants)}."
        )
    given = dict(zip(sides, constants, strict=True))
    if not given:
        return Parameter(name, shape, kind, dims=dims)
    return limits(name, shape, given.get("low", -np.inf), given.get("high", np.inf), dims)


def _from_numpyro(name: str, shape: tuple[int, ...], spec: Any, dims: Any) -> Parameter:
    while type(spec).__name__ == "_IndependentConstraint":
        spec = spec.base_constraint
    kind = _NUMPYRO.get(type(spec).__name__)
    if kind is None or (kind == "zero_sum" and spec.event_dim != 1):
        raise ValueError(
            f"`constraints`: {name!r} has the support {spec!r}, which is not among those that can "
            f"be mapped to the real line: {', '.join(KINDS)}."
        )
    if KINDS[kind].constants:
        low, high = getattr(spec, "lower_bound", -np.inf), getattr(spec, "upper_bound", np.inf)
        return limits(name, shape, low, high, dims)
    return Parameter(name, shape, kind, dims=dims)


def _each(side: Bound, shape: tuple[int, ...]) -> Bound:
    return side if isinstance(side, tuple) else (side,) * math.prod(shape)


def _limit(name: str, shape: tuple[int, ...], value: Any, none: float) -> Bound:
    """Return a bound as plain numbers: one where all are alike, `None` where there is none."""
    flat = all_of("constraints", f"of {name!r}", shape, value, none)
    if all(number == none for number in flat):
        return None
    if len(set(flat)) == 1:
        return flat[0]
    return tuple(None if number == none else number for number in flat)


def all_of(argument: str, whose: str, shape: tuple[int, ...], value: Any, none: float) -> list[float]:
    """Return one limit for each number of a parameter; `none` where there is no limit."""
    if isinstance(value, tuple | list):
        value = [none if each is None else each for each in value]
    try:
        array = np.broadcast_to(np.asarray(none if value is None else value, np.float64), shape)
    except (TypeError, ValueError):
        raise ValueError(
            f"`{argument}`: a limit {whose} must be a number or broadcast to its shape {shape}; got "
            f"{value!r}."
        ) from None
    flat = array.reshape(-1).tolist()
    if any(number != number or number == -none for number in flat):
        raise ValueError(
            f"`{argument}`: a limit {whose} must be finite, or None for no limit; got {value!r}."
        )
    return flat
