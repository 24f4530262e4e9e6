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

LOOKS = {"slopes": "the log density has other slopes at trial points", "ends": "walks uphill end elsewhere"}
"""What is known of a target besides its name, and what is said where it differs."""


def identity_of(key: Key[Array, ""], target: Target, recipe: Recipe) -> Identity:
    """Return JSON values that tell this fit from others.

    A target is known by its name, its dimension, its scores at a few points, and where a few walks uphill
    end. Values would not do: the constant of a likelihood hides what moves the posterior. Two targets that
    agree there and differ elsewhere are not told apart.
    """
    # Irrational steps: no symmetry of a target maps one point to another.
    points = np.sin(np.arange(1, 4 * target.dim + 1).reshape(4, target.dim) * math.sqrt(2.0))
    found, looks = versions(), _looks(target, points.astype(jnp.result_type(float)))
    return {
        "key": [str(jax.random.key_impl(key)), *np.asarray(jax.random.key_data(key)).tolist()],
        "recipe": recipe.plain(),
        "version": {name: found.get(name) for name in ("pushforward", "jax", "jaxlib")}
        | {"source": source()},
        "target": {"name": target.name, "dim": target.dim},
        "precision": str(jnp.result_type(float)),
        **{name: _plain(each) for name, each in looks.items()},
    }


@eqx.filter_jit
def _looks(target: Target, points: Any) -> dict[str, Float[Array, "n dim"]]:
    """Return the scores at points, and where walks end that begin there and farther and farther out."""
    scores = jax.vmap(target.score)

    def climb(_, walk):
        # Each coordinate has its own step, longer while the slope keeps its sign: scales do not matter.
        x, steps, before = walk
        signs = jnp.nan_to_num(jnp.sign(scores(x)))
        steps *= jnp.where(signs * before < 0, 0.5, 1.2)
        return x + steps * signs, steps, signs

    out = jnp.tile(10.0 ** jnp.arange(len(points))[:, None], (2, points.shape[1]))
    start = (out * jnp.concatenate([points, -points]), 0.1 * out, jnp.zeros_like(out))
    return {"slopes": scores(points), "ends": jax.lax.fori_loop(0, 200, climb, start)[0]}


def _plain(values: Any) -> list[Any]:
    return [[v if math.isfinite(v) else str(v) for v in row] for row in np.asarray(values, float).tolist()]


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """Return how two identities differ, one line each."""
    if isinstance(there, dict) and isinstance(here, dict):
        found = []
        for inner in here | there:
            path, both = f"{name}.{inner}" if name else str(inner), (there.get(inner), here.get(inner))
            if path in LOOKS and None not in both:
                found += [] if _close(*both) else [LOOKS[path]]
            else:
                found += differences(there.get(inner, "missing"), here.get(inner, "missing"), path)
        return found
    same = type(there) is type(here) and there == here
    return [] if same else [f"`{name}` is {str(there)[:80]} there and {str(here)[:80]} here"]


def _close(there: Any, here: Any) -> bool:
    """Whether numbers are the same but for the rounding of another kind of machine.

    Of a posterior 20,000 deviations from the origin, this still sees a hundredth of one.
    """
    try:
        a, b = np.asarray(there, float), np.asarray(here, float)
        # Of each coordinate by itself: the scale of another must not hide what moves this one.
        sizes = np.max(np.abs(b), axis=0, where=np.isfinite(b), initial=0.0)
        close = np.isclose(a, b, rtol=0.0, atol=5e-7 * sizes + 1e-9, equal_nan=True)
        return a.shape == b.shape and bool(close.all())
    except (TypeError, ValueError):
        return False
