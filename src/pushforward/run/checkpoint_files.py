"""The two files of a checkpoint: what stages before the training found, and where the training stands.

They are files like a sampler's: safetensors and JSON, a checksum, nothing executed. A state holds numbers
only; the structure they fill is built by the code that goes on, so that a hostile file can build nothing.
"""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import safetensors.numpy

from pushforward import files
from pushforward.atomic import write_atomically
from pushforward.base import Target
from pushforward.container import FORMAT, VERSION, BadFileError, digest, read
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Mixture, NormalMixture
from pushforward.networks import MLP, Coupled
from pushforward.recipe.neck_map import NeckMap
from pushforward.recipe.records import plain
from pushforward.recipe.state import State
from pushforward.run.identity import Identity, differences
from pushforward.training.loop import Position


class OtherRunError(ValueError):
    """A checkpoint of another fit."""


_KNOWN = {c.__name__: c for c in (Frame, NormalMixture, IndependentMixtures, Coupled, MLP, NeckMap)}
_KINDS = {"frame": Frame, "latent": Mixture, "network": Coupled, "draws": jax.Array, "necks": NeckMap}
"""The parts of a state that are written, and what each is."""


class Found(NamedTuple):
    """What the stages up to one have found, and what the driver has told of them."""

    stage: str
    state: State
    phases: list[dict[str, Any]]


def write_found(path: Path, identity: Identity, found: Found) -> None:
    """Write what the stages up to one have found."""
    state = found.state.replace(frame=found.state.coordinates)
    # As text of its own, since figures may be infinite, for which the file has no word.
    told = {"phases": found.phases, "rounds": state.rounds, "log_z": state.log_z, "good": state.good}
    about = {"kind": "found", "identity": identity, "stage": found.stage, "told": json.dumps(plain(told))}
    parts = {name: getattr(state, name) for name in _KINDS if getattr(state, name) is not None}
    files.dump(path, parts, plain(about))


def read_found(path: Path, identity: Identity, target: Target) -> Found:
    """Read what `write_found` wrote; an `OtherRunError` if it is another fit's, else a `BadFileError`."""
    with _one_error(path):
        parts, about = files.load(path, _KNOWN)
        _check(path, about, identity, "found")
        if not {"frame", "latent", "draws"} <= parts.keys() <= _KINDS.keys():
            raise ValueError("it holds something other than draws, a frame and a mixture.")
        for name, part in parts.items():
            if not isinstance(part, _KINDS[name]) or _size(part) != target.dim:
                raise ValueError(f"its {name} does not fit the target.")
        told = json.loads(about["told"])
        log_z = None if told["log_z"] is None else float(told["log_z"])
        rounds = tuple(_row(row) for row in told["rounds"])
        state = State(target=target, log_z=log_z, rounds=rounds, good=told["good"] is True, **parts)
        return Found(str(about["stage"]), state, [dict(each) for each in told["phases"]])


def _size(part: Any) -> int:
    """Return the coordinates of a part of a state."""
    if isinstance(part, jax.Array):
        return part.shape[1] if part.ndim == 2 else 0
    return part.in_size if isinstance(part, Coupled) else part.dim


def write_state(path: Path, identity: Identity, at: Position, tiles: int) -> None:
    """Write where the training stands."""
    about = {"kind": "state", "identity": identity, "tiles": tiles, **at._asdict()}
    tree = {"state": eqx.filter(about.pop("state"), eqx.is_array), "total": about.pop("total")}
    write_atomically(path, pack(tree, about))


def read_state(path: Path, identity: Identity, template: Position, num_steps: int) -> tuple[Position, int]:
    """Read what `write_state` wrote into the structure of `template`; return it and the tiles."""
    arrays, static = eqx.partition(template.state, eqx.is_array)
    with _one_error(path):
        # Another fit may have other arrays: first of all it is told apart.
        like = {"state": arrays, "total": template.total}
        tree, about = unpack(path, like, lambda about: _check(path, about, identity, "state"))
        counts = {name: about[name] for name in ("step", "bad_chunks", "bad_steps")}
        tiles, seconds = about["tiles"], float(about["seconds"])
        if not all(type(n) is int and 0 <= n <= num_steps for n in counts.values()):
            raise ValueError(f"its counts of steps are not whole numbers up to {num_steps}.")
        if type(tiles) is not int or not 0 <= tiles <= 2**20 or not 0.0 <= seconds < math.inf:
            raise ValueError("its tiles are not a number of tiles, or its seconds are not a time.")
        state, rows = eqx.combine(tree["state"], static), tuple(_row(row) for row in about["rows"])
        return Position(state, tree["total"], rows=rows, seconds=seconds, **counts), max(1, tiles)


@contextmanager
def _one_error(path: str | os.PathLike) -> Iterator[None]:
    """Whatever is wrong with a file is one and the same error."""
    wrong = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, RecursionError)
    try:
        yield
    except (OtherRunError, BadFileError):
        raise
    except (*wrong, MemoryError) as error:
        raise BadFileError(f"{path} does not describe a checkpoint: {error}") from None


def _check(path: Path, about: dict[str, Any], identity: Identity, kind: str) -> None:
    if about.get("kind") != kind or not isinstance(about.get("identity"), dict):
        raise BadFileError(f"{path} is not a checkpoint's {kind}.")
    if found := differences(about["identity"], identity):
        raise OtherRunError(
            f"`checkpoint`: {path.parent} holds another fit: {'; '.join(found[:8])}. Choose another folder, "
            "remove it, or ask for the same fit."
        )


def _row(row: Any) -> dict[str, int | float]:
    if not isinstance(row, dict) or not all(type(v) in (int, float) for v in row.values()):
        raise ValueError("its rows are not numbers by name.")
    return row


def pack(tree: Any, about: dict[str, Any]) -> bytes:
    """Return a file: floating-point arrays as tensors named by their place, counters and words as JSON."""
    places = jax.tree_util.tree_leaves_with_path(tree)
    arrays = {jax.tree_util.keystr(place): np.asarray(leaf, order="C") for place, leaf in places}
    tensors = {name: array for name, array in arrays.items() if str(array.dtype) in files.DTYPES}
    integers = {
        name: {"dtype": str(array.dtype), "value": array.tolist()}
        for name, array in arrays.items()
        if name not in tensors
    }
    body = json.dumps({**about, "integers": integers})
    words = {"format": FORMAT, "version": str(VERSION), "body": body, "sha256": digest(body, tensors)}
    return safetensors.numpy.save(tensors, metadata=words)


def unpack(
    path: str | os.PathLike, template: Any, check: Callable[[dict[str, Any]], None] = lambda about: None
) -> tuple[Any, dict[str, Any]]:
    """Return a tree like `template` with the file's numbers, and its words; anything amiss is an error.

    `check` looks at the words before the numbers are believed.
    """
    places, structure = jax.tree_util.tree_flatten_with_path(template)
    likes = {jax.tree_util.keystr(place): like for place, like in places}
    with _one_error(path):
        body, tensors = read(path)
        about = dict(json.loads(body))
        check(about)
        integers = about.pop("integers")
        if sorted(likes) != sorted([*tensors, *integers]):
            raise ValueError("it holds other arrays than this fit has.")
        leaves = [_leaf(name, like, tensors, integers) for name, like in likes.items()]
    return jax.tree_util.tree_unflatten(structure, leaves), about


def _leaf(name: str, like: Any, tensors: dict[str, np.ndarray], integers: dict[str, Any]) -> jax.Array:
    if name in tensors:
        value, kind = tensors[name], str(tensors[name].dtype)
    else:
        value, kind = integers[name]["value"], integers[name]["dtype"]
    # A copy: the file's bytes need not stay in memory, and JAX may write to what it is given.
    array = np.array(value, like.dtype) if kind == str(like.dtype) else None
    if array is None or array.shape != like.shape:
        raise ValueError(f"array {name!r} is of another type or shape than this fit has.")
    return jax.device_put(array)
