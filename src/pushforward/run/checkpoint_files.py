"""The two files of a checkpoint: what stages before the training found, and where the training stands.

They are files like a sampler's: safetensors and JSON, a checksum, nothing executed. A state holds numbers
only; the structure they fill is built by the code that goes on, so that a hostile file can build nothing.
"""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax

from pushforward import files
from pushforward.atomic import write_atomically
from pushforward.base import Target
from pushforward.container import BadFileError
from pushforward.frame import Frame
from pushforward.frozen import plain
from pushforward.latents import IndependentMixtures, Mixture, NormalMixture
from pushforward.networks import MLP, Coupled
from pushforward.recipe.state import State
from pushforward.run.identity import Identity, differences
from pushforward.training.loop import Position
from pushforward.trees import OtherTreeError, one_error, pack, unpack


class OtherRunError(OtherTreeError):
    """A checkpoint of another fit."""


_KNOWN = {c.__name__: c for c in (Frame, NormalMixture, IndependentMixtures, Coupled, MLP)}
_KINDS = {"frame": Frame, "latent": Mixture, "network": Coupled, "draws": jax.Array}
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
    told = {"phases": found.phases, "rounds": state.rounds, "log_z": state.log_z, "good": state.good,
            "one_normal": state.one_normal}  # fmt: skip
    about = {"kind": "found", "identity": identity, "stage": found.stage, "told": json.dumps(plain(told))}
    parts = {name: getattr(state, name) for name in _KINDS if getattr(state, name) is not None}
    files.dump(path, parts, plain(about))


def read_found(path: Path, identity: Identity, target: Target) -> Found:
    """Read what `write_found` wrote; an `OtherRunError` if it is another fit's, else a `BadFileError`."""
    with one_error(path):
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
        flags = {name: told[name] is True for name in ("good", "one_normal")}
        state = State(target=target, log_z=log_z, rounds=rounds, **flags, **parts)
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
    with one_error(path):
        # Another fit may have other arrays: first of all it is told apart.
        like = {"state": arrays, "total": template.total}
        try:
            tree, about = unpack(path, like, lambda about: _check(path, about, identity, "state"))
        except OtherRunError:
            raise
        except OtherTreeError as error:
            raise _other(path, [str(error)]) from None
        counts = {name: about[name] for name in ("step", "bad_chunks", "bad_steps")}
        tiles, seconds = about["tiles"], float(about["seconds"])
        if not all(type(n) is int and 0 <= n <= num_steps for n in counts.values()):
            raise ValueError(f"its counts of steps are not whole numbers up to {num_steps}.")
        if type(tiles) is not int or not 0 <= tiles <= 2**20 or not 0.0 <= seconds < math.inf:
            raise ValueError("its tiles are not a number of tiles, or its seconds are not a time.")
        state, rows = eqx.combine(tree["state"], static), tuple(_row(row) for row in about["rows"])
        return Position(state, tree["total"], rows=rows, seconds=seconds, **counts), max(1, tiles)


def _check(path: Path, about: dict[str, Any], identity: Identity, kind: str) -> None:
    if about.get("kind") != kind or not isinstance(about.get("identity"), dict):
        raise BadFileError(f"{path} is not a checkpoint's {kind}.")
    if found := differences(about["identity"], identity):
        raise _other(path, found)


def _other(path: Path, found: list[str]) -> OtherRunError:
    return OtherRunError(
        f"`checkpoint`: {path.parent} holds another fit: {'; '.join(found[:8])}. Choose another folder, "
        "remove it, or ask for the same fit."
    )


def _row(row: Any) -> dict[str, int | float]:
    if not isinstance(row, dict) or not all(type(v) in (int, float) for v in row.values()):
        raise ValueError("its rows are not numbers by name.")
    return row
