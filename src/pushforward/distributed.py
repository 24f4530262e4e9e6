"""Many processes, one fit: JAX's own distributed runtime, and what processes must agree on beside it.

    import pushforward as pf

    pf.distributed.initialize()        # before anything else; SLURM, Kubernetes and MPI are found by JAX
    fit = pf.fit(key, target)          # the same call in every process

Every process runs the same program. The batches of a step are divided among the devices of all; the rest is
done alike everywhere. What could differ between machines is done once, by the chief (process 0), and handed
to the others: what the stages before the training found, the state to begin with, the moment to stop.
"""

import atexit
import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from pushforward.checks import check_count
from pushforward.programs import came_from_running

HEARTBEAT = 30
"""Seconds without a sign of life after which a process counts as lost, and the others end."""

PIECE = 2**20
"""Bytes handed over at a time: the key-value store is made for small things."""

SIGNS_OF_LOSS = ("gloo", "connection", "socket", "heartbeat", "coordination", "unavailable", "barrier")


def initialize(
    coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> None:
    """Join the other processes of the run; call it first, in every one of them.

    `coordinator` is `host:port` of process 0, where it will listen, and nowhere else. All may be left out
    where JAX finds them in the environment (SLURM, Kubernetes, MPI, cloud TPUs).
    """
    given = (coordinator, num_processes, process_id)
    if None in given and given != (None, None, None):
        raise ValueError(
            "`coordinator`, `num_processes` and `process_id` must be given together, or none of them where "
            f"JAX finds them in the environment; got {coordinator!r}, {num_processes!r}, {process_id!r}."
        )
    # Ignored where there are accelerators, which bring collectives of their own.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # So long after a loss JAX ends the other processes by a signal; the signs of life have told long before.
    patience = 20 * HEARTBEAT
    more: dict[str, Any] = {"heartbeat_timeout_seconds": patience}
    if coordinator is not None and num_processes is not None and process_id is not None:
        _check(coordinator, num_processes, process_id)
        if process_id == 0:
            from pushforward.coordinator import start_coordinator

            # A process of its own, so that the others do not lose it with this one; JAX's own is not asked.
            start_coordinator(coordinator, num_processes, patience)
            more["coordinator_bind_address"] = "127.0.0.1:0"
    try:
        jax.distributed.initialize(coordinator, num_processes, process_id, **more)
    except ValueError as error:
        raise ValueError(
            f"the processes of the run could not be found in the environment ({error}). Give `coordinator`, "
            "`num_processes` and `process_id`."
        ) from error
    except RuntimeError as error:
        raise RuntimeError(
            f"process {process_id} could not join the run at {coordinator}: {str(error).splitlines()[0]} "
            "Call `initialize` before any other use of JAX, once, in every process."
        ) from error
    # In a thread of its own: programs that compile or run do not stop it.
    threading.Thread(target=_give_signs, args=(_client(), jax.process_index()), daemon=True).start()


def _check(coordinator: str, num_processes: int, process_id: int) -> None:
    host, colon, port = coordinator.rpartition(":")
    if not (host and colon and port.isdigit()):
        raise ValueError(f"`coordinator` must be host:port, such as 10.0.0.1:1234; got {coordinator!r}.")
    check_count(num_processes, "num_processes")
    if check_count(process_id, "process_id", at_least=0) >= num_processes:
        raise ValueError(
            f"`process_id` must be from 0 to {num_processes - 1}, one less than `num_processes`; "
            f"got {process_id}."
        )


def is_chief() -> bool:
    """Whether this process writes the files; where there is only one, it does."""
    return jax.process_index() == 0


def hand_over(name: str, path: Path) -> None:
    """Give the chief's file at `path` to all processes, each at its own `path`; no file stays no file.

    All processes must call it in the same order.
    """
    client, place = _client(), f"pushforward/{name}-{next(_handed)}"
    if is_chief():
        data = path.read_bytes() if path.is_file() else b""
        pieces = [data[i : i + PIECE] for i in range(0, len(data), PIECE)]
        for number, piece in enumerate(pieces):
            client.key_value_set_bytes(f"{place}/{number}", piece)
        client.key_value_set(f"{place}/pieces", str(len(pieces)))
    elif count := int(_wait_for(f"{place}/pieces")):
        pieces = (client.key_value_try_get_bytes(f"{place}/{number}") for number in range(count))
        path.write_bytes(b"".join(pieces))


def wait_for_all() -> None:
    """Wait until every process has come here, however long that takes; a `RuntimeError` if one is lost."""
    place = f"pushforward/meeting-{next(_handed)}"
    _client().key_value_set(f"{place}/{jax.process_index()}", "here")
    for other in range(jax.process_count()):
        _wait_for(f"{place}/{other}")


def agree(numbers: list[int]) -> np.ndarray:
    """Return what every process says, one row each."""
    return np.asarray(multihost_utils.process_allgather(np.asarray(numbers, np.int32)))


def is_loss(error: BaseException) -> bool:
    """Whether an error says that another process is gone, rather than that something is wrong.

    If so, this one ends at once when its work is done: in good order it would wait for the other.
    """
    words = str(error).lower()
    lost = came_from_running(error) and any(sign in words for sign in SIGNS_OF_LOSS)
    if lost:
        atexit.register(_leave)
    return lost


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


class Ears:
    """Hears Ctrl-C and SIGTERM without being torn out of a step that others wait in: `asked` tells.

    One that need not `listen` leaves signals as they are.
    """

    def __init__(self, *, listen: bool = True) -> None:
        self.asked, self.listen = False, listen
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Ears":
        # Python lets only the main thread listen.
        if self.listen and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.asked = True


_handed = itertools.count()
"""Tells what is handed over, and where processes meet, from the times before; the same in every process."""


def _client() -> Any:
    # JAX has no public name for its key-value store; Orbax takes the same way.
    from jax._src import distributed

    client = distributed.global_state.client
    assert client is not None, "called without `initialize`"
    return client


_seen: dict[int, tuple[str, float]] = {}
"""The last sign of life of each process, and when it was first seen."""


def _give_signs(client: Any, mine: int) -> None:
    """Count in the key-value store, where the others see it, as long as this process lives."""
    for count in itertools.count():
        try:
            client.key_value_set(f"pushforward/alive/{mine}", str(count), allow_overwrite=True)
        except jax.errors.JaxRuntimeError:
            return
        time.sleep(HEARTBEAT / 10)


def _check_signs() -> None:
    """Raise a `RuntimeError` if a process has given no sign for too long."""
    now = time.monotonic()
    for other, count in _client().key_value_dir_get("pushforward/alive/"):
        number = int(other.rpartition("/")[2])
        if _seen.get(number, ("", 0.0))[0] != count:
            _seen[number] = (count, now)
        elif now - _seen[number][1] > HEARTBEAT:
            raise RuntimeError(f"process {number} was lost: no heartbeat for {HEARTBEAT} seconds.")


def _wait_for(key: str) -> str:
    """Return what the key-value store says of a key, once it says something; raise if a process is lost."""
    while True:
        try:
            return _client().blocking_key_value_get(key, 1000)
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
        _check_signs()
