"""The reference: NUTS on all of the data, in the Laplace frame, a piece at a time."""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from reproduce.records import Record
from reproduce.studies.covertype.case import Case, Store
from reproduce.studies.covertype.judge import Judge
from reproduce.studies.fitting import diagnosed
from reproduce.studies.row import Row


def nuts_row(row: Row, case: Case, judge: Judge, store: Store) -> list[Record]:
    """Run the chains, piece by piece; a piece that is kept is not run again after an interruption."""
    from reproduce.rivals import framed_nuts

    s, target = judge.settings, case.in_frame(case.blocked)
    algorithm = framed_nuts.algorithm(target, num_chains=s.nuts_chains, num_warmup=s.nuts_warmup)
    kept = store.piece(row)
    key_init, key_run = jax.random.split(row.key("chains"))
    if kept is None or kept["settings"].tolist() != _settings(judge):
        state = eqx.filter_jit(algorithm.init)(key_init)
        kept = {"draws": np.zeros((0, s.nuts_chains, target.dim), np.float32), "seconds": np.zeros(2)}
        kept["wall"] = np.zeros(1)
        kept["settings"] = np.array(_settings(judge))
        kept |= {name: np.zeros(0) for name in ("acceptance", "divergent", "leapfrog_steps", "longest")}
    else:
        state = _restore(eqx.filter_jit(algorithm.init)(key_init), kept)
    total = s.nuts_warmup + s.nuts_draws
    # Compiled ahead, so that no piece's clock contains it.
    lower: Any = framed_nuts.positions.lower  # pyright: ignore[reportFunctionMemberAccess]
    go = lower(algorithm, key_run, state, jnp.asarray(0), s.nuts_piece).compile()
    # Pieces of one size, so that one program serves all of them; what is too much is cut away.
    while len(kept["draws"]) < total:
        first = len(kept["draws"])
        started, cpu_started = time.monotonic(), time.process_time()
        state, draws, info = go(algorithm, key_run, state, jnp.asarray(first), s.nuts_piece)
        draws = np.asarray(draws)
        spent = time.process_time() - cpu_started
        tuned = np.clip(first + len(draws) - s.nuts_warmup, 0, len(draws)) / len(draws)
        kept = kept | {
            "draws": np.concatenate([kept["draws"], draws]),
            "seconds": kept["seconds"] + spent * np.array([1 - tuned, tuned]),
            "wall": kept["wall"] + time.monotonic() - started,
            **{name: np.append(kept[name], np.asarray(info[name])) for name in info if name in kept},
            **_parts(state),
        }
        store.keep_piece(row, kept)
    return _records(row, case, judge, store, kept)


def _settings(judge: Judge) -> list[int]:
    s = judge.settings
    return [s.nuts_chains, s.nuts_warmup, s.nuts_piece, s.stand_in_rows or 0]


def _parts(state) -> dict[str, np.ndarray]:
    """Return the arrays of the chains' state, to be kept."""
    return {f"state_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}


def _restore(like, kept: dict[str, np.ndarray]):
    """Return the state that was kept."""
    leaves, structure = jax.tree.flatten(like)
    held = [jax.device_put(kept[f"state_{i}"].astype(leaf.dtype)) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, held)


def _records(row: Row, case: Case, judge: Judge, store: Store, kept: dict[str, np.ndarray]) -> list[Record]:
    s = judge.settings
    tuned = slice(s.nuts_warmup, s.nuts_warmup + s.nuts_draws)
    u = kept["draws"][tuned]
    x = np.asarray(jax.vmap(jax.vmap(case.frame))(jax.device_put(u)))
    ess, rhat = diagnosed(x)
    seconds = kept["seconds"][1] * len(u) / max(len(kept["draws"]) - s.nuts_warmup, 1)
    each = seconds / float(np.median(ess))
    store.add({
        f"reference/seconds_per_effective_draw/{row.target}/{row.seed}": np.array(each),
        f"ess/{row.target}/{row.seed}": ess.astype(np.float32),
    })  # fmt: skip
    flat = x.reshape(-1, x.shape[2])
    # Draws far apart in the chains: sets that have little to do with each other.
    sets = [
        flat[i :: len(flat) // s.predictive_draws][: s.predictive_draws]
        for i in range(min(5, len(flat) // s.predictive_draws))
    ]
    return [
        *judge.predictive_records(row, sets),
        *judge.moment_records(row, flat),
        *s.figures(row, {"train_seconds": kept["wall"][0], "train_cpu_seconds": kept["seconds"].sum()}),
        s.record(row, "seconds_per_effective_draw", each, n=len(flat)),
        s.record(row, "seconds_per_100_draws", 100 * each, n=len(flat)),
        s.record(row, "ess", np.median(ess), spread=float(ess.min()), n=len(flat)),
        s.record(row, "rhat", np.nanmax(rhat), n=len(flat)),
        *s.figures(row, {m: kept[m][tuned].mean() for m in ("acceptance", "divergent", "leapfrog_steps")}),
        s.record(row, "iterations", len(kept["draws"])),
    ]
