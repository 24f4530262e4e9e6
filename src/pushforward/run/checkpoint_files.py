"""The two files of a checkpoint: what stages before the training found, and where the training stands.

They are files like a sampler's: safetensors and JSON, a checksum, nothing executed. A state holds numbers
only; the structure they fill is built by the code that goes on, so that a hostile file can build nothing.
"""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import safetensors.numpy

from pushforward import files
from pushforward.base import Target
from pushforward.container import FORMAT, VERSION, BadFileError, digest, read, write_atomically
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


@dataclass(frozen=True)
class Found:
    """What the stages up to one have found, and what the driver has told of them."""

    stage: str
    state: State
    phases: list[dict[str, Any]]

    def into(self, state: State) -> State:
        """Return a state of the same target with what was found."""
        return self.state.replace(target=state.target)


def write_found(path: Path, identity: Identity, found: Found) -> None:
    """Write what the stages up to one have found."""
    state = found.state
    # As text of its own, since figures may be infinite, for which the file has no word.
    told = {"phases": found.phases, "rounds": state.rounds, "log_z": state.log_z, "good": state.good}
    about = {"kind": "found", "identity": identity, "stage": found.stage, "told": json.dumps(plain(told))}
    state = state.replace(frame=state.coordinates)
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
        rounds, log_z = tuple(_row(row) for row in told["rounds"]), told["log_z"]
        log_z = None if log_z is None else float(log_z)
        state = State(target=target, log_z=log_z, rounds=rounds, good=told["good"] is True, **parts)
        return Found(str(about["stage"]), state, [dict(each) for each in told["phases"]])


def _size(part: Any) -> int:
    """Return the coordinates of a part of a state."""
    if isinstance(part, jax.Array):
        return part.shape[1] if part.ndim == 2 else 0
    return part.in_size if isinstance(part, Coupled) else part.dim


def write_state(path: Path, identity: Identity, at: Position, tiles: int) -> None:
    """Write where the training stands."""
    tree = {"state": eqx.filter(at.state, eqx.is_array), "total": at.total}
    about = {
        "kind": "state", "identity": identity, "tiles": tiles, "step": at.step, "rows": list(at.rows),
        "bad_chunks": at.bad_chunks, "bad_steps": at.bad_steps, "seconds": at.seconds,
    }  # fmt: skip
    write_atomically(path, pack(tree, about))


def read_state(path: Path, identity: Identity, template: Position, num_steps: int) -> tuple[Position, int]:
    """Read what `write_state` wrote into the structure of `template`; return it and the tiles."""
    arrays, static = eqx.partition(template.state, eqx.is_array)
    with _one_error(path):
        tree, about = unpack(path, {"state": arrays, "total": template.total})
        _check(path, about, identity, "state")
        at = Position(
            eqx.combine(tree["state"], static), tree["total"], _count(about, "step", num_steps),
            tuple(_row(row) for row in about["rows"]), _count(about, "bad_chunks", num_steps),
            _count(about, "bad_steps", num_steps), _seconds(about),
        )  # fmt: skip
        return at, max(1, _count(about, "tiles", 2**20))


@contextmanager
def _one_error(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file is one and the same error."""
    try:
        yield
    except (OtherRunError, BadFileError):
        raise
    except (
        *(KeyError, TypeError, AttributeError, ValueError, IndexError),
        *(OverflowError, RecursionError, MemoryError),
    ) as error:
        raise BadFileError(f"{path} does not describe a checkpoint: {error}") from None


def _check(path: Path, about: dict[str, Any], identity: Identity, kind: str) -> None:
    if about.get("kind") != kind or not isinstance(about.get("identity"), dict):
        raise BadFileError(f"{path} is not a checkpoint's {kind}.")
    found = differences(about["identity"], identity)
    if found:
        raise OtherRunError(
            f"`checkpoint`: {path.parent} holds another fit: {'; '.join(found[:8])}. Choose another folder, "
            "remove it, or ask for the same fit."
        )


def _count(about: dict[str, Any], name: str, most: int) -> int:
    value = about[name]
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{name!r} must be a whole number up to {most}.")
    return value


def _seconds(about: dict[str, Any]) -> float:
    value = float(about["seconds"])
    if not 0.0 <= value < math.inf:
        raise ValueError("its seconds are not a time.")
    return value


def _row(row: Any) -> dict[str, int | float]:
    if not isinstance(row, dict) or not all(type(v) in (int, float) for v in row.values()):
        raise ValueError("its rows are not numbers by name.")
    return row


FLOATS = ("float32", "float64")


def pack(tree: Any, about: dict[str, Any]) -> bytes:
    """Return a file: floating-point arrays as tensors named by their place, counters and words as JSON."""
    tensors, integers = {}, {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name, array = jax.tree_util.keystr(path), np.asarray(leaf)
        if str(array.dtype) in FLOATS:
            tensors[name] = np.asarray(array, order="C")
        else:
            integers[name] = {"dtype": str(array.dtype), "value": array.tolist()}
    body = json.dumps({**about, "integers": integers})
    words = {"format": FORMAT, "version": str(VERSION), "body": body, "sha256": digest(body, tensors)}
    return safetensors.numpy.save(tensors, metadata=words)


def unpack(path: str | os.PathLike, template: Any) -> tuple[Any, dict[str, Any]]:
    """Return a tree like `template` with the file's numbers, and its words; anything amiss is an error."""
    body, tensors = read(path)
    about = json.loads(body)
    if not isinstance(about, dict) or not isinstance(about.get("integers"), dict):
        raise BadFileError(f"{path} is not a checkpoint.")
    integers = about.pop("integers")
    places, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(place) for place, _ in places]
    if set(names) != tensors.keys() | integers.keys() or tensors.keys() & integers.keys():
        raise BadFileError(f"{path} holds other arrays than this fit has.")
    leaves = [
        _leaf(path, name, tensors.get(name), integers.get(name), like)
        for name, (_, like) in zip(names, places, strict=True)
    ]
    return jax.tree_util.tree_unflatten(structure, leaves), about


def _leaf(path: Any, name: str, tensor: np.ndarray | None, integer: Any, like: Any) -> jax.Array:
    if tensor is None:
        try:
            tensor = np.asarray(integer["value"], dtype=np.dtype(like.dtype))
            same = integer["dtype"] == str(like.dtype)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise BadFileError(f"{path}: {name!r} is not a counter.") from None
    else:
        same = tensor.dtype == like.dtype
    if not same or tensor.shape != like.shape:
        raise BadFileError(f"{path}: array {name!r} is of another type or shape than this fit has.")
    # A copy: the file's bytes need not stay in memory, and JAX may write to what it is given.
    return jax.device_put(np.array(tensor))
