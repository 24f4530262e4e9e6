"""One honest file of every kind that is ever read, and the function that reads it."""

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from typer.testing import CliRunner

import pushforward as pf
from pushforward import arrays, runtime
from pushforward.cli import app
from pushforward.cli.check import _read_draws
from pushforward.cli.join import check_set, read_blocks
from pushforward.cli.shards import Note, read_note
from pushforward.container import BadFileError
from pushforward.frame import Frame
from pushforward.latents import NormalMixture
from pushforward.networks import coupled, mlp, modulated
from pushforward.parameters import Parameter, Parameters
from pushforward.recipe.state import State
from pushforward.run.checkpoint_files import (
    Found,
    OtherRunError,
    read_found,
    read_state,
    write_found,
    write_state,
)
from pushforward.runs import load_run
from pushforward.sampler import Sampler, load
from pushforward.targets import gaussian
from pushforward.training.loop import Position
from reproduce import records
from reproduce.data.images import read_idx
from reproduce.report.cells import read_results

ABOUT = {
    "format": "pushforward-run", "version": 1, "target": {"spec": "donut", "name": "donut", "dim": 2},
    "method": "kl", "settings": {"width": 8}, "changed": {}, "seed": 0, "command": "pushforward fit donut",
    "versions": {"jax": "0"}, "cores": 2, "outcome": "FINISHED", "message": "", "rows": 2,
    "phases": [{"phase": "train", "seconds": 1.5}], "metrics": {"ksd_imq_v": {"value": 0.1, "floor": None}},
}  # fmt: skip
HISTORY = '{"step": 1, "seconds": 0.5, "objective": 1.25}\n{"step": 2, "seconds": 1.0, "objective": null}\n'


IDENTITY = {"key": ["fry", 0, 1], "recipe": {"training": {"width": 8}}, "log_density": [0.5, "-inf"]}
TARGET = gaussian()
POSITION = Position(
    {"w": jnp.ones((2, 3)), "count": jnp.asarray(4)},
    {"objective": jnp.asarray(0.5)},
    50,
    ({"step": 40, "ksd": float("nan")},),
)


def _found():
    latent = NormalMixture(jnp.ones(2) / 2, jnp.zeros((2, 2)), jnp.stack([jnp.eye(2)] * 2))
    network = coupled(jax.random.key(2), 2, width=3, depth=1)
    state = State(
        target=TARGET, frame=Frame.identity(2), latent=latent, network=network, draws=jnp.zeros((5, 2)), log_z=-1.5,
        rounds=({"log_z": -1.5, "temperatures": 3},),
    )  # fmt: skip
    return Found("maps", state, [{"phase": "anneal", "seconds": 2.5}])


def _ours(read, path, *rest):
    """Read a checkpoint's file; one of another fit is refused in its own way, which is as good."""
    try:
        return read(path, IDENTITY, *rest)
    except OtherRunError as error:
        raise BadFileError(f"{path}: {error}") from error


def samplers(folder: Path) -> list[bytes]:
    latent = NormalMixture(jnp.ones(2) / 2, jnp.zeros((2, 2)), jnp.stack([jnp.eye(2)] * 2))
    made = []
    for network in (
        mlp(jax.random.key(0), 2, 2, width=3, depth=1, skip=True),
        modulated(jax.random.key(1), 2, width=3, depth=1),
    ):
        Sampler(latent, network, Frame.identity(2), json.dumps({"target": "none"})).save(folder / "honest.pf")
        made.append((folder / "honest.pf").read_bytes())
    (folder / "honest.pf").unlink()
    return made


def honest(folder: Path) -> dict[str, list[bytes]]:
    """Return the bytes of honest files by kind."""
    points = np.arange(6, dtype=np.float32).reshape(3, 2)
    npy, npz, packed, plain = (io.BytesIO() for _ in range(4))
    np.savez(plain, draws=points)
    np.save(npy, points)
    np.savez(npz, draws=points, more=np.arange(4))
    np.savez_compressed(packed, draws=points, grid=np.zeros((50, 50), np.uint8))
    path = folder / "honest.jsonl"
    header = records.Header("study", "cpu", 0, "command", {"jax": "0"}, 2)
    records.write(
        path, header, [records.Record("study", "cpu", "kl", "donut", "ksd", 0.5, 0.1, 500, 3, 0, 0.2)] * 3
    )
    note = Note(0, 3, 3, 2, "float32", 0, "iid", "0" * 64, "1" * 64)
    files = {
        "sampler": samplers(folder),
        "records": [path.read_bytes()],
        "run": [json.dumps(ABOUT, indent=2).encode()],
        "history": [HISTORY.encode()],
        "note": [note.text()],
        "npy": [npy.getvalue()],
        "npz": [npz.getvalue(), packed.getvalue()],
    }
    write_state(folder / "honest.pf", IDENTITY, POSITION, 2)
    files["checkpoint"] = [(folder / "honest.pf").read_bytes()]
    write_found(folder / "honest.pf", IDENTITY, _found())
    files["found"] = [(folder / "honest.pf").read_bytes()]
    for left in (path, folder / "honest.pf"):
        left.unlink()
    return {**files, **_draws(folder), "runtime": files["sampler"], "results": files["records"],
            "show sampler": files["sampler"], "show run": files["run"], "show draws": [plain.getvalue()],
            "join": [npy.getvalue()], "check": [plain.getvalue()], "part": [npy.getvalue()], "idx": [b"\0\0\x08\x02\0\0\0\x02\0\0\0\x03" + bytes(range(6))]}  # fmt: skip


def _command(*words) -> str:
    """Run a command in this process: whatever it refuses, it refuses by one message and no traceback."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code == 2 and result.stderr.count("error: ") >= 1:
        raise BadFileError(result.stderr)
    if result.exit_code:
        raise result.exception or RuntimeError(f"exit code {result.exit_code}")
    return result.output


DRAWN = {"named npz": "npz", "named npy": "npy", "csv": "csv", "parquet": "parquet", "nc": "nc"}
"""Kinds of files of draws, and their suffixes."""


def _draws(folder: Path) -> dict[str, list[bytes]]:
    """Return files of draws, named and not, in every format."""
    names = Parameters((Parameter("mu"), Parameter("tau", (), "positive"), Parameter("w", (2, 3), "simplex")))
    x = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    made = pf.Draws.of(jnp.asarray(x), names, {"target": "none"}, {"acceptance": jnp.ones(40)})
    found = {}
    for kind, suffix in DRAWN.items():
        found[kind] = []
        for draws in (made, pf.Draws.of(jnp.asarray(x))):
            draws.save(folder / f"honest.{suffix}")
            found[kind].append((folder / f"honest.{suffix}").read_bytes())
        (folder / f"honest.{suffix}").unlink()
    return found


def _joined(path: Path) -> int:
    """Read a part as `join` does."""
    return sum(len(block) for path, note in check_set([path]) for block in read_blocks(path, note))


def readers(folder: Path) -> dict[str, tuple[Path, Callable[[], Any]]]:
    """Return by kind where a file must stand in `folder` and what reads it there."""
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (run / "run.json").write_text(json.dumps(ABOUT))
    (run / "history.jsonl").write_text(HISTORY)
    (run / "sampler.pf").write_bytes(b"")
    other, shown = folder / "other", folder / "shown"
    for copy in (other, shown):
        shutil.copytree(run, copy, dirs_exist_ok=True)
    results = folder / "results"
    results.mkdir(exist_ok=True)
    points = np.arange(6, dtype=np.float32).reshape(3, 2)
    note = Note(0, 3, 3, 2, "float32", 0, "iid", "0" * 64, hashlib.sha256(points.tobytes()).hexdigest())
    for name in ("p", "j"):
        (folder / f"{name}.npy.json").write_bytes(note.text())
    return {
        "sampler": (folder / "s.pf", lambda: load(folder / "s.pf")),
        "records": (folder / "r.jsonl", lambda: records.read(folder / "r.jsonl")),
        "run": (run / "run.json", lambda: load_run(run)),
        "history": (other / "history.jsonl", lambda: load_run(other)),
        "note": (folder / "d.npy.json", lambda: read_note(folder / "d.npy")),
        "npy": (folder / "a.npy", lambda: arrays.read_npy(folder / "a.npy")),
        "npz": (folder / "a.npz", lambda: arrays.read_npz(folder / "a.npz")),
        "checkpoint": (folder / "c.pf", lambda: _ours(read_state, folder / "c.pf", POSITION, 100)),
        "runtime": (folder / "n.pf", lambda: runtime.load(folder / "n.pf")),
        "results": (results / "study.jsonl", lambda: read_results(results)),
        "show sampler": (folder / "show.pf", lambda: _command("show", folder / "show.pf")),
        "show run": (shown / "run.json", lambda: _command("show", shown)),
        "show draws": (folder / "show.npz", lambda: _command("show", folder / "show.npz", "--json")),
        "join": (
            folder / "j.npy",
            lambda: _command("join", folder / "j.npy", "--out", folder / "o.npy", "--force"),
        ),
        "check": (folder / "c.npz", lambda: _read_draws(folder / "c.npz", TARGET)),
        "part": (folder / "p.npy", lambda: _joined(folder / "p.npy")),
        "idx": (folder / "i.idx", lambda: read_idx(folder / "i.idx")),
        **{
            kind: (folder / f"d.{suffix}", lambda suffix=suffix: pf.load_draws(folder / f"d.{suffix}"))
            for kind, suffix in DRAWN.items()
        },
        "found": (folder / "f.pf", lambda: _ours(read_found, folder / "f.pf", TARGET)),
    }
