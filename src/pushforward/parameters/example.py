"""Names and shapes from an example: any pytree of arrays, its paths the names."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from pushforward.parameters.record import Parameters
from pushforward.parameters.specs import EXAMPLES, match_names, read_constraint


def parameters_of_example(example: Any, constraints: Any) -> tuple[Parameters, Any]:
    """Return the parameters that a pytree of arrays shows, and the structure to put them back into."""
    paths, structure = jax.tree_util.tree_flatten_with_path(example)
    if not paths:
        raise ValueError("`example` must hold at least one array; it is an empty pytree.")
    single = len(paths) == 1 and not paths[0][0]
    names = ["x"] if single else [".".join(_word(step) for step in path) for path, _ in paths]
    if single and constraints is not None and not isinstance(constraints, Mapping):
        constraints = {"x": constraints}
    if constraints is not None and not isinstance(constraints, Mapping):
        raise TypeError(
            f"`constraints` must map names of `example` to constraints, such as {EXAMPLES}; "
            f"got {type(constraints).__name__}."
        )
    specs = match_names(flat(constraints) if constraints is not None else None, names)
    items = tuple(
        read_constraint(name, _shape(name, leaf), specs[name])
        for name, (_, leaf) in zip(names, paths, strict=True)
    )
    return Parameters(items), structure


def flat(constraints: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested constraints under dotted names: those of a nested example."""
    found: dict[str, Any] = {}
    for name, spec in constraints.items():
        if isinstance(spec, Mapping):
            found |= flat(spec, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = spec
    return found


def _word(step: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(step, attribute):
            return str(getattr(step, attribute))
    return str(step)


def _shape(name: str, leaf: Any) -> tuple[int, ...]:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return tuple(leaf.shape)
    try:
        array = np.asarray(leaf)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"`example`: {name!r} must be an array of real numbers; got {type(leaf).__name__}.")
    return array.shape
