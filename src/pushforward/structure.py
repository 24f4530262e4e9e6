"""From the words of a file to its parts, without JAX: only what is on a fixed list can be built."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

MAX_DEPTH = 16  # no honest tree is deeper; a hostile one shall not exhaust the stack

MOST, LEAST = 3.0, 8.0
"""Bounds of the log by which a layer of a map stretches and shrinks a coordinate.

The neck of a funnel asks for a factor of 400 in one layer; what stretches as much throws a few draws far
away. Both bounds are part of the format: a file holds weights, and these bounds say what the weights mean."""


MIXTURES = ("NormalMixture", "IndependentMixtures")


def check_mixture(name: str, fields: Mapping[str, Any]) -> None:
    """Refuse weights that are no shares of anything, and spreads below zero."""
    weights = np.atleast_1d(np.asarray(fields["weights"]))
    if not weights.size or np.any(weights < 0) or not np.all(weights.sum(-1) > 0):
        raise ValueError(f"the weights of {name} must not be negative, nor all zero.")
    spreads = fields["scales"] if "scales" in fields else np.diagonal(fields["choleskys"], 0, -2, -1)
    if np.any(np.asarray(spreads) < 0):
        raise ValueError(f"the spreads of {name} must not be negative.")


def rebuild(
    node: Any,
    tensors: dict[str, np.ndarray],
    classes: Mapping[str, Callable[..., Any]],
    as_array: Callable[[np.ndarray], Any],
    *,
    depth: int = 0,
) -> Any:
    """Return what `node` describes; tensors that were used are taken out of `tensors`.

    It is `{"tensor": name}`, `{"tuple": [...]}`, `{"module": name, "fields": {...}}` or `{"value": ...}`;
    only what `classes` name may be built. Raises `ValueError`, `TypeError`, `KeyError`, `AttributeError` or
    `IndexError` where it describes nothing: the caller knows the file and makes one error of them.
    """
    if depth > MAX_DEPTH:
        raise ValueError("its structure is nested too deeply.")
    rest = tensors, classes, as_array
    if "tensor" in node:
        array = tensors.pop(node["tensor"])
        if not np.all(np.isfinite(array)):
            raise ValueError(f"array {node['tensor']!r} holds values that are not finite.")
        return as_array(array)
    if "tuple" in node:
        return tuple(rebuild(part, *rest, depth=depth + 1) for part in node["tuple"])
    if "module" in node:
        name = node["module"]
        try:
            make = classes[name]
        except KeyError:
            raise ValueError(f"it names a module {name!r} that this release does not know.") from None
        fields = {str(key): rebuild(part, *rest, depth=depth + 1) for key, part in node["fields"].items()}
        if name in MIXTURES:
            check_mixture(name, fields)
        return make(**fields)
    value = node["value"]
    if not (value is None or isinstance(value, str | int | float | bool)):
        raise ValueError("it holds a value that is neither text nor number.")
    return value
