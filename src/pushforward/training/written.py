"""The two files of a checkpoint: what the teacher taught, and where the training stands.

They are files like a sampler's: safetensors and JSON, a checksum, nothing executed. A state holds numbers
only; the structure they fill is built by the code that goes on, so that a hostile file can build nothing.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from pushforward import files
from pushforward.container import BadFileError, write_atomically
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, NormalMixture
from pushforward.networks import MLP, Coupled
from pushforward.training.identity import differences
from pushforward.training.lesson import Lesson
from pushforward.training.loop import Position
from pushforward.training.packing import pack, unpack

Identity = dict[str, Any]


class OtherRunError(ValueError):
    """A checkpoint of another fit."""


class Taught(eqx.Module):
    """The arrays of a lesson."""

    frame: Frame
    mixture: NormalMixture | IndependentMixtures
    draws: Float[Array, "m dim"]


def write_lesson(path: Path, identity: Identity, lesson: Lesson, seconds: float) -> None:
    """Write what the teacher taught, and in how many seconds."""
    about = {
        "kind": "lesson", "identity": identity, "seconds": seconds,
        "log_z": repr(float(lesson.log_z)), "rounds": [_spelt(row) for row in lesson.rounds],
    }  # fmt: skip
    parts = {"lesson": Taught(lesson.frame, lesson.mixture, lesson.draws)}
    files.dump(path, parts if lesson.network is None else parts | {"map": lesson.network}, about)


def read_lesson(path: Path, identity: Identity) -> tuple[Lesson, float]:
    """Read what `write_lesson` wrote; an `OtherRunError` if it is another fit's, else a `BadFileError`."""
    with _one_error(path):
        known = (Taught, Frame, NormalMixture, IndependentMixtures, Coupled, MLP)
        parts, about = files.load(path, {c.__name__: c for c in known})
        _check(path, about, identity, "lesson")
        taught = parts["lesson"]
        if not isinstance(taught, Taught) or not isinstance(taught.frame, Frame):
            raise TypeError("it holds something other than a lesson.")
        mixture = taught.mixture
        if not isinstance(mixture, NormalMixture | IndependentMixtures) or mixture.dim != taught.frame.dim:
            raise ValueError("its mixture and its frame do not fit.")
        if taught.draws.ndim != 2 or taught.draws.shape[1] != taught.frame.dim:
            raise ValueError("its draws and its frame do not fit.")
        network = parts.get("map")
        if network is not None and (not isinstance(network, Coupled) or network.in_size != taught.frame.dim):
            raise ValueError("its map and its frame do not fit.")
        rounds = [_read(row) for row in about["rounds"]]
        lesson = Lesson(taught.frame, taught.mixture, taught.draws, float(about["log_z"]), rounds, network)
        return lesson, _seconds(about)


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


def _spelt(row: dict[str, float]) -> dict[str, int | float | str]:
    # As text where JSON has no word for it.
    return {name: value if math.isfinite(value) else repr(value) for name, value in row.items()}


def _read(row: dict[str, Any]) -> dict[str, float]:
    if not all(type(value) in (int, float, str) for value in row.values()):
        raise ValueError("its rounds are not numbers by name.")
    return {name: float(value) if isinstance(value, str) else value for name, value in row.items()}
