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

    A target is known by its name, its dimension and its scores at a few points. Values would not do: the
    constant of a likelihood hides what moves the posterior. Two targets that agree there and differ elsewhere
    are not told apart.
    """
    # Irrational steps: no symmetry of a target maps one point to another.
    grid = np.arange(1, 4 * target.dim + 1).reshape(4, target.dim)
    points = np.sin(grid * math.sqrt(2.0)).astype(jnp.result_type(float))
    scores, bends = (np.asarray(a, float) for a in _scores(target, jnp.asarray(points)))
    found = versions()
    return {
        "key": [str(jax.random.key_impl(key)), *np.asarray(jax.random.key_data(key)).tolist()],
        "recipe": recipe.plain(),
        "version": {name: found.get(name) for name in ("pushforward", "jax", "jaxlib")}
        | {"source": source()},
        "target": {"name": target.name, "dim": target.dim},
        "precision": str(jnp.result_type(float)),
        "scores": _plain(scores),
        "bends": _plain(bends),
    }


@eqx.filter_jit
def _scores(
    target: Target, points: Float[Array, "n dim"]
) -> tuple[Float[Array, "n dim"], Float[Array, "n dim"]]:
    """Return scores, and how much each changes along a step in all coordinates, per unit of the step."""
    scores = jax.vmap(target.score)
    step = 1e-2 * jnp.where(jnp.sin(jnp.arange(points.size)) > 0, 1.0, -1.0).reshape(points.shape)
    return scores(points), jnp.abs(scores(points + step) - scores(points - step)) / 2e-2


def _plain(values: np.ndarray) -> list[Any]:
    return [value if math.isfinite(value) else str(value) for value in values.ravel().tolist()]


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """Return how two identities differ, one line each."""
    if isinstance(there, dict) and isinstance(here, dict):
        found = []
        for inner in here | there:
            path = f"{name}.{inner}" if name else str(inner)
            if path == "scores":
                if not _close(there, here):
                    found.append("the log density has other slopes at trial points")
            elif path != "bends":
                found += differences(there.get(inner, "missing"), here.get(inner, "missing"), path)
        return found
    same = type(there) is type(here) and there == here
    return [] if same else [f"`{name}` is {str(there)[:80]} there and {str(here)[:80]} here"]


def _close(there: dict[Any, Any], here: dict[Any, Any]) -> bool:
    """Whether scores differ by less than a posterior that moved by a hundredth of its deviation would.

    `sqrt(bend)` is one over a deviation. Two kinds of device may differ a little, in proportion.
    """
    kept = [each.get(name) or [] for each in (there, here) for name in ("scores", "bends")]
    if len({len(each) for each in kept}) > 1:
        return False
    largest = max([0.0, *(abs(v) for v in kept[2] if isinstance(v, float) and math.isfinite(v))])
    for a, b, bend in zip(kept[0], kept[2], kept[3], strict=True):
        if a == b:
            continue
        if not all(isinstance(each, float) for each in (a, b, bend)):
            return False
        if abs(a - b) > 5e-3 * math.sqrt(bend) + 1e-5 * largest:
            return False
    return True
