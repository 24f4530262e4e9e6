"""A fit's memory outside the process: killed at any moment, the same call goes on to the very same bits.

A folder holds what the stages before the training have found (`found.pf`, written after each of them) and
where the training stands (`state-STEP.pf`, the last two).
"""

import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from pushforward import distributed
from pushforward.base import Target
from pushforward.checks import check_positive
from pushforward.container import BadFileError
from pushforward.recipe.state import State
from pushforward.run.checkpoint_files import Found, read_found, read_state, write_found, write_state
from pushforward.run.identity import Identity
from pushforward.training.loop import Position

FOUND, STATE = "found.pf", "state-{:012d}.pf"


class Checkpoint:
    """A folder of checkpoints of one fit, its `identity`; that of another fit is refused.

    A file is written `every` so many seconds, by one of many processes; if that one is lost, the others write
    to the folder `after_loss`.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        identity: Identity,
        *,
        every: float = 60.0,
        writes: bool = True,
        after_loss: str | os.PathLike | None = None,
    ):
        self.folder, self.writes, self.after_loss = Path(folder), writes, after_loss
        # As a file would give it back.
        self.identity = json.loads(json.dumps(identity))
        self.every = check_positive(every, "checkpoint_every", zero=True)
        self.found_file = self.folder / FOUND
        self._last, self._last_step, self._lock = time.monotonic(), -1, None
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"`checkpoint` must be a folder; {folder} is a file. Choose another name.")
        if not writes:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.folder)
            # What a kill in the middle of writing left behind.
            for left in (*self.folder.glob(".state-*.pf.*"), *self.folder.glob(f".{FOUND}.*")):
                left.unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(
                f"`checkpoint` must be a folder where this user can write; {self.folder}: {error.strerror}."
            ) from error

    def close(self) -> None:
        """Let others use the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def keep_found(self, stage: str, state: State, phases: list[dict[str, Any]]) -> None:
        """Write down what the stages up to one have found."""
        self._try(lambda: write_found(self.found_file, self.identity, Found(stage, state, phases)))

    def found(self, target: Target) -> Found | None:
        """Return what the stages before the training have found, if it was written down."""
        read = lambda path: read_found(path, self.identity, target)  # noqa: E731
        return self._read([self.found_file], read, "annealing begins again")

    def share(self, stage: str, state: State, phases: list[dict[str, Any]]) -> State:
        """Return the state that the chief has found, in every process."""
        if jax.process_count() == 1:
            return state
        if distributed.is_chief():
            self.keep_found(stage, state, phases)
        distributed.hand_over("found", self.found_file)
        if distributed.is_chief():
            return state
        handed = self.found(state.target)
        assert handed is not None
        return handed.state

    def keep(self, at: Position, *, tiles: int = 1, now: bool = False, lost: bool = False) -> None:
        """Write where the training stands, if it is time or `now`; the two newest files stay.

        If a process was `lost`, it may have been the one that writes: then all do, and all the same.
        """
        if lost and not self.writes and self.after_loss is not None:
            self.folder, self.writes = Path(self.after_loss), True
            self._try(lambda: self.folder.mkdir(parents=True, exist_ok=True))
        due = now or time.monotonic() - self._last >= self.every
        if not due or at.step == self._last_step:
            return
        self._last = time.monotonic()
        path = self.folder / STATE.format(at.step)
        if self._try(lambda: write_state(path, self.identity, at, tiles)):
            self._last_step = at.step
            for old in self._states()[2:]:
                old.unlink(missing_ok=True)

    def restore(self, template: Position, num_steps: int) -> tuple[Position, int] | None:
        """Return the newest position that can be read, in the structure of `template`, and its tiles."""
        read = lambda path: read_state(path, self.identity, template, num_steps)  # noqa: E731
        found = self._read(self._states(), read, "an older one is used, or training begins again")
        if found is not None:
            self._last_step = found[0].step
        return found

    def recall(self, begin: Position, num_steps: int) -> tuple[Position, int] | None:
        """Return where an earlier run came to; of many processes, all begin where the chief does."""
        chief = distributed.is_chief()
        found = self.restore(begin, num_steps) if chief else None
        if jax.process_count() == 1:
            return found
        if chief:
            self.keep(begin if found is None else found[0], now=True)
        distributed.hand_over("state", self._states()[0] if chief else self.folder / STATE.format(0))
        return self.restore(begin, num_steps)

    def _states(self) -> list[Path]:
        """Return the files, the newest first."""
        return sorted(self.folder.glob("state-*.pf"), reverse=True)

    def _read(self, paths: list[Path], read: Callable[[Path], Any], then: str) -> Any:
        """Return what the first file says that can be read; the others are set aside."""
        for path in filter(Path.exists, paths):
            try:
                return read(path)
            except BadFileError as error:
                warnings.warn(f"the checkpoint {path} cannot be used, so {then}: {error}", stacklevel=3)
                if self.writes:
                    path.replace(path.with_name(path.name + ".bad"))
        return None

    def _try(self, write: Callable[[], Any]) -> bool:
        """Write, or say why not: a full disk must not cost the training."""
        if not self.writes:
            return False
        try:
            write()
        except OSError as error:
            warnings.warn(
                f"no checkpoint could be written to {self.folder}: {error.strerror or error}. Training goes "
                "on; the last one that was written stays.",
                stacklevel=3,
            )
            return False
        return True


def _lock(folder: Path) -> int | None:
    """Return an open file that says to other processes that the folder is in use; it ends with this one."""
    try:
        import fcntl
    except ImportError:
        return None
    path = folder / ".lock"
    # A link could lead to any file of this user.
    if path.is_symlink():
        raise ValueError(f"`checkpoint`: {path} is a symbolic link. Remove it, or choose another folder.")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise ValueError(
            f"`checkpoint`: another process is using {folder}. Wait for it, or choose another folder."
        ) from None
    except OSError:
        # A file system without locks: what it cannot say it cannot say.
        pass
    return file
