"""Files that are not what they should be, by the thousand, through every reader there is.

    python benchmarks/mutated_files.py [--files 20000] [--out results/mutated_files.jsonl]

Honest files of every kind are torn, flipped, swapped and swollen, or made to lie under a valid checksum
(`tests/survive/mutations.py`). A reader may return a valid object, or refuse by a `BadFileError`. The files
are read in pieces, and what is done is kept beside the records: the same command goes on where it stopped.
"""

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "survive"))

STUDY, SEED, PIECE = "mutated_files", 0, 200
SECONDS, MEMORY = 2.0, 16 * 2**20
"""Of computing, and bytes besides twice the honest file's, that a reader may take."""

COUNTS = (
    *("files", "refused", "valid", "other_errors"),
    *("hangs", "too_much_memory", "executed", "written_outside"),
)
INSTALLED = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]))
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Watch:
    """What Python says of programs that are started, modules that are loaded and files that are written."""

    def __init__(self, folder: Path):
        self.folder, self.on, self.executed, self.written = str(folder), False, [], []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in ("exec", "os.system", "os.exec", "pickle.find_class", "import", "subprocess.Popen"):
            # The reader of netCDF is a program of ours.
            ours = event == "subprocess.Popen" and "netcdf_child.py" in str(args)
            # What is installed may load more of itself.
            ours = ours or (event == "exec" and getattr(args[0], "co_filename", "").startswith(INSTALLED))
            self.executed += [] if ours else [f"{event} {args}"[:300]]
        if event == "open" and isinstance(args[0], str) and args[2] & WRITES:
            # And it hands the numbers over in a file without a name, by the folder of such.
            inside = args[0] in (tempfile.gettempdir(), os.devnull)
            inside = inside or os.path.abspath(args[0]).startswith(self.folder)
            self.written += [] if inside else [f"{args}"[:300]]


def memory(field: str) -> int:
    """Return bytes of memory that this process has (`VmRSS`), or has had at most (`VmHWM`)."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in text.splitlines() if line.startswith(field)))


def computed() -> float:
    """Return seconds that this process and those it waited for have computed."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def read_piece(
    piece: int, files: dict[str, list[bytes]], places: dict[str, Any], watch: Watch
) -> dict[str, Any]:
    """Read the files of one piece, and count by kind what came of them."""
    from mutations import mutate

    from pushforward.container import BadFileError

    counts: dict[str, Counter] = {kind: Counter() for kind in places}
    longest, most = 0.0, 0
    for i in range(piece * PIECE, (piece + 1) * PIECE):
        kind = list(places)[i % len(places)]
        path, read = places[kind]
        rng, found = random.Random(f"{SEED} {i}"), counts[kind]
        strangers = [data for other, held in files.items() if other != kind for data in held]
        honest = rng.choice(files[kind])
        data = mutate(rng, kind, honest, strangers)
        path.write_bytes(data)
        Path("/proc/self/clear_refs").write_text("5")
        before, began = memory("VmRSS"), computed()
        watch.on, heard = True, (len(watch.executed), len(watch.written))
        try:
            read()
            found["valid"] += 1
        except BadFileError:
            found["refused"] += 1
        except Exception as error:
            print(f"{kind} {i}: {type(error).__name__}: {error}"[:500], flush=True)
            found["other_errors"] += 1
        watch.on = False
        seconds, grown = computed() - began, memory("VmHWM") - before
        longest, most = max(longest, seconds), max(most, grown - 2 * max(len(data), len(honest)))
        if seconds > SECONDS or grown > 2 * max(len(data), len(honest)) + MEMORY:
            print(f"{kind} {i}: {seconds:.2f} s, {grown / 1e6:.1f} MB", flush=True)
        found["hangs"] += seconds > SECONDS
        found["too_much_memory"] += grown > 2 * max(len(data), len(honest)) + MEMORY
        found["executed"] += len(watch.executed) - heard[0]
        found["written_outside"] += len(watch.written) - heard[1]
        found["files"] += 1
        for event in (*watch.executed[heard[0] :], *watch.written[heard[1] :]):
            print(f"{kind} {i}: {event}", flush=True)
    return {"piece": piece, "counts": counts, "longest": longest, "most": most}


def read_all(count: int, log: Path) -> list[dict[str, Any]]:
    """Read all pieces that the log does not hold yet, and return it."""
    from honest import honest, readers

    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    todo = sorted(set(range(-(-count // PIECE))) - {row["piece"] for row in done})
    with tempfile.TemporaryDirectory(prefix="mutated-") as name:
        folder = Path(name)
        watch, files, places = Watch(folder), honest(folder), readers(folder)
        for kind, (path, read) in places.items():
            # Whatever is imported and compiled, is so before anything is measured.
            for data in files[kind]:
                path.write_bytes(data)
                read()
        for piece in todo:
            began = time.monotonic()
            done.append(read_piece(piece, files, places, watch))
            with log.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
            print(f"piece {piece}: {time.monotonic() - began:.0f} s", flush=True)
    return [row for row in done if row["piece"] * PIECE < count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("results/mutated_files.jsonl"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    log = options.out.with_name(f".{options.out.stem}.log")
    rows = read_all(options.files, log)

    from reproduce.records import Header, Record, write

    command = f"python benchmarks/mutated_files.py --files {options.files}"
    header, found = Header.of_this_machine(STUDY, "cpu", SEED, command), []
    for kind in rows[0]["counts"]:
        for name in COUNTS:
            total = sum(row["counts"][kind].get(name, 0) for row in rows)
            found.append(Record(STUDY, "cpu", "pushforward", kind, name, total, seed=SEED))
    found.append(
        Record(STUDY, "cpu", "pushforward", "all", "longest_seconds", max(r["longest"] for r in rows))
    )
    found.append(Record(STUDY, "cpu", "pushforward", "all", "most_bytes", max(r["most"] for r in rows)))
    write(options.out, header, found)
    log.unlink()
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
