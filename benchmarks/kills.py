"""What a kill costs: fits in every stage and by every method, commands that write, and a study.

    python benchmarks/kills.py [--kills 200] [--only fit-default] [--out results/kills.jsonl]

Each piece of work is run undisturbed, and then again and again: killed by SIGKILL, in a fit once a certain
stage has begun, and called once more until it is done. It is lost if it does not come to its end, or if what
it leaves is not bit by bit what it left undisturbed. Pieces already recorded are left out, so the benchmark
may be stopped at any time.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

# Nothing of these starts a backend of JAX, so that a fork of this process is as good as a new one.
import equinox
import jax
import jax.numpy as jnp
import optax
import scipy.special
from rich.console import Console
from rich.table import Table

import pushforward as pf
from pushforward.cli import app
from reproduce.records import Header, Record, read, write

STUDY, SEED = "kills", 0
IMPORTED = (equinox, optax, scipy.special)

SMALL = {
    "annealing.num_particles": 64, "num_steps": 40, "width": 4, "batch_size": 8, "search.num_walks": 16,
    "search.rounds": 2, "search.round_steps": 20, "search.newton_steps": 3, "search.looks": 4096,
    "path.enough": 2.0, "adapt.enough": 1e9, "annealing.num_sweeps": 2, "annealing.most_temperatures": 3,
    "maps.rounds": 2, "maps.steps_first": 20, "maps.steps_next": 20, "maps.steps_to_choose": 10,
    "maps.batch_size": 8, "maps.good": 2.0, "judge.learnt": 2.0, "judge.least": 2.0,
    "judge.least_nats": 0.0, "judge.low": -1e9, "judge.in_vain": -1.0, "reweight.num_draws": 256,
    "reweight.marginal_steps": 10, "law.steps": 3, "clock.rows": 10, "fallback.num_steps": 3,
    "fallback.usual_pieces": 3, "fallback.least_pieces": 2, "fallback.num_warmup": 4, "fallback.levels": 3,
    "fallback.num_leapfrog": 2, "fallback.heating": 2,
}  # fmt: skip
"""A recipe by which every stage of the default has something to do, and none does much."""


def two_modes(x: jax.Array) -> jax.Array:
    """Two normal laws, side by side."""
    return jnp.logaddexp(-0.5 * jnp.sum((x - 2.0) ** 2), -0.5 * jnp.sum((x + 2.0) ** 2))


def told(stage: pf.Stage, folder: Path) -> pf.Stage:
    """Return a stage that writes down when it has begun and ended."""

    def run(*arguments: Any) -> Any:
        (folder / "began").write_text(stage.name)
        started = time.monotonic()
        yield from stage.run(*arguments)
        (folder / f"seconds-{stage.name}").write_text(str(time.monotonic() - started))

    return replace(stage, run=run)


def fit(name: str) -> Callable[[Path], None]:
    """Return the work of a fit by a method, with a checkpoint after every few steps."""

    def work(folder: Path) -> None:
        few = SMALL if name == "default" else {n: v for n, v in SMALL.items() if not n.startswith("fallback")}
        if name == "annealed":
            few = {n: v for n, v in few.items() if "." in n}
        method = pf.methods.make(name, **few)
        method = method.replace(stages=tuple(told(stage, folder) for stage in method.stages))
        target = pf.Target.from_log_density(two_modes, dim=3, name="two modes")
        done = pf.fit(
            jax.random.key(SEED), target, method=method, progress=False, throw=False,
            checkpoint=folder / "checkpoint", checkpoint_every=0.0,
        )  # fmt: skip
        rows = [{n: v for n, v in row.items() if n != "seconds"} for row in done.history]
        words = [json.dumps([done.outcome.name, rows]).encode()]
        leaves = [jax.device_get(leaf).tobytes() for leaf in jax.tree.leaves(done.sampler)]
        (folder / "sha256").write_text(hashlib.sha256(b"".join(words + leaves)).hexdigest())

    return work


def inputs(folder: Path) -> None:
    """Leave a sampler and two parts of draws in a folder, for commands to read."""
    os.chdir(folder)
    method = pf.methods.KL(frame="identity", width=8, num_steps=20)
    done = pf.fit(jax.random.key(SEED), pf.targets.rosenbrock(), method=method, progress=False, throw=False)
    done.sampler.save("sampler.pf")
    for part in (1, 2):
        words = [
            "sample",
            "sampler.pf",
            "-n",
            "100000",
            "--shard",
            f"{part}/2",
            "--out",
            f"part-{part}.npy",
            "-q",
        ]
        app(words, standalone_mode=False)


def command(*words: str, left: str) -> Callable[[Path], None]:
    """Return the work of a command, called in a folder beside that of its inputs."""

    def work(folder: Path) -> None:
        os.chdir(folder)
        (folder / "began").write_text("command")
        # What a kill has left is the whole or nothing: half a file would be taken for the whole here.
        if not Path(left).exists():
            app([*words], standalone_mode=False)
        if Path(left).is_dir():
            leaves = jax.tree.leaves(pf.load(Path(left) / "sampler.pf"))
            whole = b"".join(jax.device_get(leaf).tobytes() for leaf in leaves)
        else:
            whole = Path(left).read_bytes()
        (folder / "sha256").write_text(hashlib.sha256(whole).hexdigest())

    return work


def study(folder: Path) -> None:
    """Run a study's smoke preset on one target, and write a checksum of all figures but times down."""
    from reproduce import records
    from reproduce.studies import two_d

    (folder / "began").write_text("study")
    settings = two_d.PRESETS["smoke"].replace(targets=("gaussian",), methods=("kl-plain", "exact", "ld"))
    _, found = records.read(two_d.run(settings, folder / "study"))
    rows = sorted(str(r) for r in found if "second" not in r.metric and r.metric != "done")
    (folder / "sha256").write_text(hashlib.sha256("\n".join(rows).encode()).hexdigest())


class Piece(NamedTuple):
    """A piece of work, the stages after whose beginning it is killed, and its share of the kills."""

    work: Callable[[Path], None]
    stages: tuple[str, ...]
    share: float


DEFAULT = tuple(stage.name for stage in pf.methods.METHODS["default"].stages)
OTHERS = tuple(name for name in pf.methods.METHODS if name != "default")
TINY = tuple(word for name, value in {"frame": "identity", "width": 8, "num_steps": 300}.items()
             for word in ("--set", f"{name}={value}"))  # fmt: skip
COMMANDS = {
    "fit": (
        "out",
        ("fit", "rosenbrock", "--method", "kl", *TINY, "--checkpoint", "kept", "--out", "out", "-q"),
    ),
    "sample": ("d.npy", ("sample", "../inputs/sampler.pf", "-n", "1000000", "--out", "d.npy", "-q")),
    "sample-csv": ("d.csv", ("sample", "../inputs/sampler.pf", "-n", "50000", "--out", "d.csv", "-q")),
    "sample-shard": (
        "d.npy",
        ("sample", "../inputs/sampler.pf", "-n", "1000000", "--shard", "1/2", "--out", "d.npy", "-q"),
    ),
    "join": ("d.npy", ("join", "../inputs/part-1.npy", "../inputs/part-2.npy", "--out", "d.npy")),
    "export": ("s.onnx", ("export", "../inputs/sampler.pf", "--out", "s.onnx")),
}
PIECES = {
    "fit-default": Piece(fit("default"), DEFAULT, 0.36),
    **{f"fit-{name}": Piece(fit(name), ("anneal", "maps" if name == "annealed" else "train"), 0.035)
       for name in OTHERS},
    **{f"command-{name}": Piece(command(*words, left=left), ("command",), 0.28 / len(COMMANDS))
       for name, (left, words) in COMMANDS.items()},
    "study-two-d": Piece(study, ("study",), 0.08),
}  # fmt: skip


def in_child(work: Callable[[Path], None], folder: Path) -> int:
    """Start `work` in a process of its own and return its id."""
    (folder / "began").unlink(missing_ok=True)
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        work(folder)
        code = 0
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(pid: int, until: Callable[[], bool]) -> bool:
    """Wait for a process until something is so; say whether it has ended before."""
    while not until():
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.005)
    return False


def killed(piece: Piece, folder: Path, stage: str, longest: dict[str, float], rng: random.Random) -> bool:
    """Let the work run and kill it at a random moment of a stage; say whether it was there to be killed."""
    pid, began = in_child(piece.work, folder), folder / "began"
    if ended(pid, lambda: began.exists() and began.read_text() == stage):
        return False
    deadline = time.monotonic() + rng.uniform(0.0, 1.1 * longest[stage])
    if ended(pid, lambda: time.monotonic() > deadline):
        return False
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


def run(name: str, piece: Piece, wanted: int) -> dict[str, float]:
    """Kill a piece of work so often, and count what was lost."""
    rng, found = random.Random(f"{SEED} {name}"), {"kills": 0, "runs": 0, "lost": 0}
    with tempfile.TemporaryDirectory() as place:
        if name.startswith("command"):
            (Path(place) / "inputs").mkdir()
            ended(in_child(inputs, Path(place) / "inputs"), lambda: False)
        for which in ("first", "undisturbed"):
            folder = Path(place) / which
            folder.mkdir()
            started = time.monotonic()
            ended(in_child(piece.work, folder), lambda: False)
            seconds = time.monotonic() - started
        if not (folder / "sha256").exists():
            raise RuntimeError(f"{name} does not run undisturbed: {(folder / 'log').read_text()[-2000:]}")
        expected = (folder / "sha256").read_text()
        longest = dict.fromkeys(piece.stages, seconds)
        longest |= {f.name[8:]: float(f.read_text()) for f in folder.glob("seconds-*")}
        stages = [stage for stage in piece.stages if stage in longest and (len(piece.stages) == 1 or
                  (folder / f"seconds-{stage}").exists())]  # fmt: skip
        while found["kills"] < wanted:
            folder = Path(place) / f"run-{found['runs']}"
            folder.mkdir()
            # Three kills each, in stages one after the other; then to the end.
            for number in range(3):
                hit = killed(piece, folder, stages[(found["kills"] + number) % len(stages)], longest, rng)
                if hit:
                    found["kills"] += 1
                    found[f"kills_{(folder / 'began').read_text()}"] = 1 + found.get(
                        f"kills_{(folder / 'began').read_text()}", 0
                    )
                if (folder / "sha256").exists():
                    break
            if not (folder / "sha256").exists():
                ended(in_child(piece.work, folder), lambda: False)
            found["runs"] += 1
            same = (folder / "sha256").exists() and (folder / "sha256").read_text() == expected
            if not same:
                found["lost"] += 1
                Console(stderr=True).print(
                    f"{name}, run {found['runs']}:", (folder / "log").read_text()[-1500:]
                )
    return {**found, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=list(PIECES), choices=list(PIECES))
    parser.add_argument("--out", type=Path, default=Path("results/kills.jsonl"))
    options = parser.parse_args()
    header = Header.of_this_machine(STUDY, "cpu", SEED, f"python benchmarks/kills.py --kills {options.kills}")
    rows = []
    if options.out.exists():
        header, rows = read(options.out)
    table = Table("work", "killed", "in stages", "runs", "lost", title="what a kill costs")
    with tempfile.TemporaryDirectory() as cache:
        # Compiled once for all runs: what is tried is what a fit has found, not what XLA makes.
        os.environ["PUSHFORWARD_CACHE"] = os.environ["JAX_COMPILATION_CACHE_DIR"] = cache
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        for name in [name for name in options.only if name not in {row.target for row in rows}]:
            figures = run(name, PIECES[name], max(1, round(PIECES[name].share * options.kills)))
            rows += [Record(STUDY, "cpu", "sigkill", name, m, v, seed=SEED) for m, v in figures.items()]
            write(options.out, header, rows)
            stages = ", ".join(m.removeprefix("kills_") for m in figures if m.startswith("kills_"))
            table.add_row(name, *(f"{figures[m]:g}" for m in ("kills",)), stages,
                          *(f"{figures[m]:g}" for m in ("runs", "lost")))  # fmt: skip
            Console().print(f"{name}: {figures}")
    Console().print(table, f"written to {options.out}")


if __name__ == "__main__":
    main()
