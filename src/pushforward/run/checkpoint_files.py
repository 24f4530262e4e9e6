"""The two files of a checkpoint: what stages before the training found, and where the training stands.

They are files like a sampler's: safetensors and JSON, a checksum, nothing executed. A state holds numbers
only; the structure they fill is built by the code that goes on, so that a hostile file can build nothing.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from pushforward import files
from pushforward.base import Target
from pushforward.container import BadFileError, write_atomically
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, NormalMixture
from pushforward.networks import MLP, Coupled
from pushforward.recipe.neck_map import NeckMap
from pushforward.recipe.records import plain
from pushforward.recipe.state import State
from pushforward.run.identity import Identity, differences
from pushforward.run.packing import pack, unpack
from pushforward.training.loop import Position


class OtherRunError(ValueError):
    """A checkpoint of another fit."""


class _Arrays(eqx.Module):
    """The arrays of what annealing found."""

    frame: Frame
    latent: NormalMixture | IndependentMixtures
    draws: Float[Array, "m dim"]


class _Necks(eqx.Module):
    """The arrays of a map along necks."""

    frame: Frame
    network: Coupled


_KNOWN = {c.__name__: c for c in (_Arrays, _Necks, Frame, NormalMixture, IndependentMixtures, Coupled, MLP)}


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
    state, necks = found.state, found.state.necks
    assert state.log_z is not None
    assert state.draws is not None
    about = {
        "kind": "found", "identity": identity, "stage": found.stage, "phases": found.phases,
        "good": state.good,
        "log_z": repr(float(state.log_z)), "rounds": [_spelt(row) for row in state.rounds],
        "necks": None if necks is None else list(necks.necks),
    }  # fmt: skip
    parts: dict[str, Any] = {"found": _Arrays(state.coordinates, state.mixture, state.draws)}
    if state.network is not None:
        parts["map"] = state.network
    if necks is not None:
        parts["necks"] = _Necks(necks.frame, necks.network)
    files.dump(path, parts, plain(about))


def read_found(path: Path, identity: Identity, target: Target) -> Found:
    """Read what `write_found` wrote; an `OtherRunError` if it is another fit's, else a `BadFileError`."""
    with _one_error(path):
        parts, about = files.load(path, _KNOWN)
        _check(path, about, identity, "found")
        found, network, necks = parts["found"], parts.get("map"), parts.get("necks")
        if not isinstance(found, _Arrays) or not isinstance(found.frame, Frame):
            raise TypeError("it holds something other than draws, a frame and a mixture.")
        dim, latent = found.frame.dim, found.latent
        if not isinstance(latent, NormalMixture | IndependentMixtures) or latent.dim != dim:
            raise ValueError("its mixture and its frame do not fit.")
        if found.draws.ndim != 2 or found.draws.shape[1] != dim or dim != target.dim:
            raise ValueError("its draws and its frame do not fit.")
        if network is not None and (not isinstance(network, Coupled) or network.in_size != dim):
            raise ValueError("its map and its frame do not fit.")
        along = None
        if necks is not None:
            if not isinstance(necks, _Necks) or necks.network.in_size != dim:
                raise ValueError("its map along necks and its frame do not fit.")
            along = NeckMap(tuple(_within(each, dim) for each in about["necks"]), necks.frame, necks.network)
        state = State(
            target=target, frame=found.frame, latent=latent, network=network, draws=found.draws, necks=along,
            log_z=float(about["log_z"]), rounds=tuple(_read(row) for row in about["rounds"]),
            good=about["good"] is True,
        )  # fmt: skip
        return Found(str(about["stage"]), state, [dict(each) for each in about["phases"]])


def _within(value: Any, dim: int) -> int:
    if type(value) is not int or not 0 <= value < dim:
        raise ValueError("its necks are no coordinates.")
    return value


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
