"""A stage's memory outside the process: killed at any moment, it goes on where its last file says."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.files import BadFileError, write_atomically
from pushforward.trees import pack, unpack
from reproduce.studies.ebm.settings import Settings
from reproduce.studies.store import Beside

Step = Callable[[Key[Array, ""], Any], tuple[Any, dict[str, Array]]]
"""`step(key, state) -> (state, info)`; compiled already, since what it closes over is its own business."""


def train(
    name: str,
    key: Key[Array, ""],
    step: Step,
    state: Any,
    *,
    num_steps: int,
    folder: Path,
    every: float,
    observe: Callable[[str], None],
    look: Callable[[int, Any], None] | None = None,
    recipe: dict[str, Any] | None = None,
) -> Any:
    """Take `num_steps` steps, or those that are left, and return the state.

    A Python loop over one compiled step: on a CPU a convolution inside `lax.scan` loses its fast path. Step
    `i` uses `fold_in(key, i)`, so that an interruption changes no bit. `look` is called at each of 24 looks;
    a checkpoint of another `recipe`, in plain values, is refused.
    """
    path = folder / f"{name}.pf"
    arrays, rest = eqx.partition(state, eqx.is_array)
    done = 0
    if path.exists():
        arrays, about = _restore(path, arrays, name)
        if about.get("recipe") != recipe:
            raise BadFileError(
                f"{path} was trained by another recipe than these settings have: {_unlike(about, recipe)}. "
                "Remove that file to train this stage again, or use the settings it was made with."
            )
        done = about["step"]
        state = eqx.combine(arrays, rest)
        observe(f"{name}: {done} of {num_steps} steps are kept")
    # The final length is part of the schedule, so a state of a longer run is already past this one's end.
    looks = set(np.unique(np.geomspace(1, num_steps, 24).round().astype(int)).tolist())
    last, began, sums, count = time.monotonic(), time.monotonic(), {}, 0
    for i in range(done, num_steps):
        state, info = step(jax.random.fold_in(key, i), state)
        for word, value in info.items():
            sums[word] = sums.get(word, 0.0) + value
        count += 1
        if look is not None and i + 1 in looks:
            look(i + 1, state)
        now = time.monotonic()
        if i + 1 == num_steps or now - last >= every:
            keep(path, state, {"stage": name, "step": i + 1, "recipe": recipe})
            words = ", ".join(f"{w} {float(v) / count:.4g}" for w, v in sums.items())
            observe(f"{name}: {i + 1} of {num_steps} steps, {words}, {now - began:.0f} s")
            last, sums, count = time.monotonic(), {}, 0
    return state


def _unlike(about: dict[str, Any], recipe: dict[str, Any] | None) -> str:
    """Return the first value in which a checkpoint's recipe is another."""
    theirs, mine = about.get("recipe") or {}, recipe or {}
    name = next(name for name in {**theirs, **mine} if theirs.get(name) != mine.get(name))
    return f"`{name}` was {theirs.get(name)!r} and is {mine.get(name)!r}"


def keep(path: Path, state: Any, about: dict[str, Any]) -> None:
    """Write a state's arrays, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, pack(eqx.filter(state, eqx.is_array), about))


def _restore(path: Path, arrays: Any, stage: str) -> tuple[Any, dict[str, Any]]:
    try:
        found, about = unpack(path, arrays)
        step, kept = about["step"], about["stage"]
    except (BadFileError, KeyError, ValueError) as error:
        raise BadFileError(
            f"{path} is no checkpoint of the stage {stage!r} with these settings: {error} It may be of "
            "another architecture. Use the settings it was made with or another folder, or begin again with "
            "`--fresh`."
        ) from None
    if kept != stage or not isinstance(step, int):
        raise BadFileError(f"{path} is a checkpoint of the stage {kept!r}, not of {stage!r}.")
    return found, about


ARCHITECTURE = (
    "preset", "seed", "max_steps", "made_images", "energy_steps", "teacher_images", "sigma_min", "sigma_max",
    "classifier", "classifier_widths", "energy",
    "energy_widths", "energy_middle", "residual_base", "mixing", "late_mixing", "late_from",
    "teacher_evaluations", "generator", "latent", "generator_widths", "kinds",
)  # fmt: skip
"""What must be the same for a folder's checkpoints to be of use."""


class Store(Beside):
    """Figures for the report, and checkpoints of the stages."""

    study = "ebm"

    def claim(self, settings: Settings) -> None:
        """Say whose checkpoints these are; those of other networks are refused."""
        mine = json.loads(json.dumps({name: getattr(settings, name) for name in ARCHITECTURE}))
        path = self.pieces / "settings.json"
        if not path.exists():
            self.pieces.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(mine).encode())
            return
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise BadFileError(f"{path} cannot be read. Begin again with `--fresh`.") from None
        differ = [name for name in ARCHITECTURE if theirs.get(name) != mine[name]]
        if differ:
            name = differ[0]
            raise ValueError(
                f"{self.pieces} holds checkpoints of other settings: `{name}` was {theirs.get(name)!r} "
                f"and is {mine[name]!r}. Choose another folder, or begin again with `--fresh`."
            )
