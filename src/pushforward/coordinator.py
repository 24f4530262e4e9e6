"""The coordinator of many processes, in a process of its own: it outlives the one that started it.

JAX keeps it in process 0. Were that killed, the others would end at once by a signal, with all they hold.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path


def start_coordinator(address: str, num_processes: int, patience: int) -> None:
    """Start the coordinator, listening at `address`, `host:port`, and nowhere else; it ends by itself.

    `patience`: seconds without a sign of life after which it calls a process lost, and for which it waits for
    the last of them once whoever started it is gone.
    """
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + patience / 10
    # One of an earlier run may still wait for its last process; two would share what comes in.
    while _listens(host.strip("[]"), int(port)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"`coordinator`: another program listens at {address}. Choose another port.")
        time.sleep(0.2)
    words = [sys.executable, "-m", "pushforward.coordinator", address, str(num_processes), str(patience)]
    # Its own session: a signal to the group of this process, as by Ctrl-C, is not meant for it.
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    began = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True)
    assert began.stdout is not None
    if not began.stdout.readline():
        raise RuntimeError(
            f"`coordinator`: this process could not listen at {address}. Give an address of the machine of "
            "process 0, with a port that is free."
        )
    _kept.append(began)


_kept: list[subprocess.Popen] = []
"""Its standard input stays open as long as this process lives."""


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def serve(address: str, num_processes: int, patience: int) -> None:
    """Coordinate until whoever started this is gone, and the other processes too."""
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage] - it has no public name

    service = _jax.get_distributed_runtime_service(
        address, num_processes, heartbeat_timeout=patience, shutdown_timeout=patience
    )
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and connections(int(address.rpartition(":")[2])):
        time.sleep(0.2)
    # In good order it would wait for those that are lost.
    del service
    os._exit(0)


def connections(port: int) -> int:
    """Return how many connections to a port of this machine are open; where nobody can tell, one."""
    found = 0
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        try:
            rows = [line.split() for line in table.read_text().splitlines()[1:]]
        except OSError:
            return 1
        found += sum(row[3] == "01" and int(row[1].rpartition(":")[2], 16) == port for row in rows)
    return found


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
