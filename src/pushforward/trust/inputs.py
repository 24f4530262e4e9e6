"""What may be checked: a sampler, a function `sample(key, n)`, or draws from elsewhere."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.sampler import Sampler
from pushforward.trust.settings import LIMITS

SAMPLER, FUNCTION, ARRAY = "sampler", "function", "array"


class Handed(NamedTuple):
    """The draws to judge, as they came."""

    draws: Float[np.ndarray, "n dim"]
    spare: Float[np.ndarray, "n dim"] | None
    """Draws with another key: to choose coordinates and steps by, and to see whether the key matters."""
    kind: str


def gather(key: Key[Array, ""], sampler: Any, target: Target, num_draws: int) -> Handed:
    """Return the draws of whatever was handed in, or say why it cannot be checked against `target`."""
    if isinstance(sampler, Sampler):
        _check_same_target(sampler, target)
    if isinstance(getattr(sampler, "sampler", None), Sampler):
        raise TypeError("`sampler` must be a Sampler; got the result of a fit. Pass `fit.sampler`.")
    as_array = getattr(sampler, "to_numpy", None)
    # A table of draws may have a `sample` too, which means something else.
    draw: Any = None if as_array else getattr(sampler, "sample", sampler)
    if not callable(draw):
        return Handed(check_rows(as_array() if as_array else sampler, "sampler", target.dim), None, ARRAY)
    kind = SAMPLER if isinstance(sampler, Sampler) else FUNCTION
    key_draws, key_spare = jax.random.split(key)
    draws, spare = (
        check_rows(draw(each, num_draws), "sampler", target.dim, exactly=num_draws)
        for each in (key_draws, key_spare)
    )
    return Handed(draws, spare, kind)


def check_rows(
    values: Any, argument: str, dim: int, *, exactly: int | None = None
) -> Float[np.ndarray, "n dim"]:
    """Return draws as an array of the target's dimension and enough rows; finite or not is judged later."""
    wanted = f"`{argument}` must {'return' if exactly else 'be'} draws of shape ({exactly or 'n'}, {dim})"
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        found = np.asarray(None)
    if not np.issubdtype(found.dtype, np.number) or np.issubdtype(found.dtype, np.complexfloating):
        hint = "" if exactly else " It may also be a Sampler or a function `sample(key, n)`."
        raise TypeError(f"{wanted}; got {type(values).__name__} of dtype {found.dtype}.{hint}")
    if found.ndim == 3 and found.shape[2] == dim:
        raise ValueError(
            f"{wanted}; got {found.shape}. Chains are stacked one after the other: "
            f"`{argument}.reshape(-1, {dim})`."
        )
    if found.ndim != 2 or found.shape != (exactly or len(found), dim):
        raise ValueError(f"{wanted}, since the target has {dim} coordinates; got {found.shape}.")
    if len(found) < LIMITS.least_draws:
        raise ValueError(
            f"`{argument}` must hold at least {LIMITS.least_draws} draws for a check to tell anything; "
            f"got {len(found)}."
        )
    return found.astype(jax.dtypes.canonicalize_dtype(float))


def _check_same_target(sampler: Sampler, target: Target) -> None:
    if sampler.dim != target.dim:
        raise ValueError(
            f"`sampler` must be one of the target's dimension, {target.dim}; it makes draws of "
            f"{sampler.dim} coordinates. Pass the target it was trained on."
        )
    told = sampler.about.get("target")
    name = told.get("name") if isinstance(told, dict) else told
    if name is not None and name != target.name:
        raise ValueError(
            f"`sampler` was trained on the target {name!r}; it was to be checked against "
            f"{target.name!r}. Pass that target, or, if they are the same under two names, check "
            "`sampler.sample`, which carries no name."
        )
