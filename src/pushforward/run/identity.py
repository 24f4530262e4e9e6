"""What makes a fit this fit: key, recipe, versions and target; and how two of them differ, in words."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.machine import source, versions
from pushforward.recipe.table import Recipe

Identity = dict[str, Any]


def identity_of(key: Key[Array, ""], target: Target, recipe: Recipe) -> Identity:
    """Return JSON values that tell this fit from others.

    A target is known by its name, its dimension and its log density at a few points: two targets that agree
    there and differ elsewhere are not told apart.
    """
    # Irrational steps: no symmetry of a target maps one point to another.
    grid = np.arange(1, 4 * target.dim + 1).reshape(4, target.dim)
    points = np.sin(grid * math.sqrt(2.0)).astype(jnp.result_type(float))
    values, found = np.asarray(_values(target, jnp.asarray(points)), float), versions()
    return {
        "key": [str(jax.random.key_impl(key)), *np.asarray(jax.random.key_data(key)).tolist()],
        "recipe": recipe.plain(),
        "version": {name: found.get(name) for name in ("pushforward", "jax", "jaxlib")}
        | {"source": source()},
        "target": {"name": target.name, "dim": target.dim},
        "precision": str(jnp.result_type(float)),
        "log_density": [value if math.isfinite(value) else str(value) for value in values.tolist()],
    }


@eqx.filter_jit
def _values(target: Target, points: Float[Array, "n dim"]) -> Float[Array, " n"]:
    return jax.vmap(target.log_density)(points)


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """Return how two identities differ, one line each."""
    if isinstance(there, dict) and isinstance(here, dict):
        found = []
        for inner in here | there:
            path = f"{name}.{inner}" if name else str(inner)
            found += differences(there.get(inner, "missing"), here.get(inner, "missing"), path)
        return found
    if name == "log_density":
        return [] if _close(there, here) else ["the log density has other values at trial points"]
    same = type(there) is type(here) and there == here
    return [] if same else [f"`{name}` is {str(there)[:80]} there and {str(here)[:80]} here"]


def _close(there: Any, here: list[Any]) -> bool:
    # Values of one log density on two kinds of device may differ a little, in proportion.
    if not isinstance(there, list) or len(there) != len(here):
        return False
    scale = max([1.0, *(abs(v) for v in here if isinstance(v, float))])
    return all(
        a == b or (isinstance(a, float) and isinstance(b, float) and abs(a - b) <= 1e-3 * scale)
        for a, b in zip(there, here, strict=True)
    )
