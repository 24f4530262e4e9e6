"""Names and shapes from an example: any pytree of arrays, its paths the names."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from pushforward.checks import check_choice, check_count
from pushforward.parameters.record import Parameters
from pushforward.parameters.specs import EXAMPLES, all_of, read_constraint


class Structure(NamedTuple):
    """How named values become a pytree like the example: JAX's order of its leaves is not the written one."""

    tree: Any
    names: tuple[str, ...]

    def filled(self, values: Mapping[str, Any]) -> Any:
        """Return the pytree."""
        return jax.tree.unflatten(self.tree, [values[name] for name in self.names])


def parameters_of_example(example: Any, constraints: Any) -> tuple[Parameters, Structure]:
    """Return the parameters that a pytree of arrays shows, in the order in which it was written.

    With them comes the structure to put their values back into.
    """
    found, tree = jax.tree_util.tree_flatten_with_path(example)
    leaves = dict(found)
    if not leaves:
        raise ValueError("`example` must hold at least one array; it is an empty pytree.")
    single = () in leaves
    words = {path: "x" if single else ".".join(_word(step) for step in path) for path in leaves}
    paths = _written(example)
    names = [words[path] for path in paths]
    constraints = {} if constraints is None else constraints
    if single and not isinstance(constraints, Mapping):
        constraints = {"x": constraints}
    if not isinstance(constraints, Mapping):
        raise TypeError(
            f"`constraints` must map names of `example` to constraints, such as {EXAMPLES}; "
            f"got {type(constraints).__name__}."
        )
    specs = flat(constraints)
    for name in specs:
        check_choice(name, "constraints", names)
    items = tuple(
        read_constraint(name, _shape(name, leaves[path]), specs.get(name))
        for name, path in zip(names, paths, strict=True)
    )
    return Parameters(items), Structure(tree, tuple(words.values()))


def vector(dim: Any, bounds: Any, example: Any, constraints: Any) -> tuple[np.ndarray, tuple[str, Any, Any]]:
    """Return the example and the constraint of a plain vector with bounds `(low, high)`."""
    if example is not None or constraints is not None or dim is None:
        raise ValueError(
            "`bounds` are those of a plain vector, and need `dim`: write `dim=3, bounds=(0, None)`. Limits "
            'of an `example` are `constraints`, such as `{"tau": ("interval", 0, 1)}`.'
        )
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise TypeError(
            "`bounds` must be `(low, high)`, each a number, one for each coordinate, or None: "
            f"`bounds=(0, None)`; got {bounds!r}."
        )
    whose, shape = f"for `dim={dim}`", (check_count(dim, "dim"),)
    low, high = (all_of("bounds", whose, shape, bounds[k], none) for k, none in enumerate((-np.inf, np.inf)))
    if bad := [i for i in range(dim) if not low[i] < high[i]]:
        raise ValueError(
            f"`bounds`: each low must lie below its high; in coordinate {bad[0]} they are {low[bad[0]]:g} "
            f"and {high[bad[0]]:g}."
        )
    return np.zeros(dim), ("interval", low, high)


def flat(constraints: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested constraints under dotted names: those of a nested example."""
    found: dict[str, Any] = {}
    for name, spec in constraints.items():
        if isinstance(spec, Mapping):
            found |= flat(spec, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = spec
    return found


def _written(node: Any) -> list[tuple[Any, ...]]:
    """Return the paths of all leaves in the order in which they were written: JAX sorts dictionaries."""
    children = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda part: part is not node)[0]
    if isinstance(node, dict):
        places = {key: place for place, key in enumerate(node)}
        children.sort(key=lambda child: places[child[0][0].key])
    return [(*path, *rest) for path, child in children for rest in (_written(child) if path else [()])]


def _word(step: Any) -> str:
    found = (getattr(step, attribute) for attribute in ("key", "name", "idx") if hasattr(step, attribute))
    return str(next(found, step))


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
