"""Rows of the rivals: NUTS and a flow, stopped at the seconds that the default took."""

import time
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from reproduce import records
from reproduce.records import Record
from reproduce.studies.fitting import diagnosed, train_flow
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.settings import Settings
from reproduce.studies.row import Row, from_pool
from reproduce.studies.running import Observe
from reproduce.studies.store import Store


def _seconds_for(row: Row, settings: Settings, store: Store) -> float:
    """Return what the default took on this target with this seed, by the records."""
    path = store.folder.parent / f"{settings.study}.jsonl"
    theirs = {
        record.metric: record.value
        for record in (records.read(path)[1] if path.exists() else ())
        if (record.method, record.target, record.seed) == ("default", row.target, row.seed)
    }
    if "train_seconds" not in theirs or theirs.get("crashed"):
        raise ValueError(
            f"`methods`: {row.method} is stopped at the seconds that `default` took on {row.target}, seed "
            f"{row.seed}, and there is none. Run `default` first, in the same folder."
        )
    return min(theirs["train_seconds"], settings.most_rival_seconds)


def nuts_row(row: Row, judge: Judge, store: Store, observe: Observe) -> list[Record]:
    """Run NUTS, warm-up and compilation included, until the default's seconds are over."""
    from pushforward.mcmc import nuts

    s, allowed = judge.settings, _seconds_for(row, judge.settings, store)
    algorithm = nuts.algorithm(
        judge.target, num_chains=s.nuts_chains, num_warmup=s.nuts_warmup, initial_scale=judge.case.start_scale
    )
    key_init, key_draws = jax.random.split(row.key("chains"))
    started = time.monotonic()
    state = jax.block_until_ready(eqx.filter_jit(algorithm.init)(key_init))
    pieces, number = [], 0
    while not pieces or time.monotonic() - started < allowed:
        state, positions = _sweeps(algorithm.step, jax.random.fold_in(key_draws, number), state, s.nuts_piece)
        pieces.append(np.asarray(positions))
        number += 1
    seconds = time.monotonic() - started
    chains = np.concatenate(pieces)
    flat = jax.device_put(chains.reshape(-1, judge.target.dim))
    ess = float(diagnosed(chains, 50)[0].min()) if len(chains) >= 8 else np.nan
    return [
        *judge.scores(row, from_pool(flat), flat.shape[0]),
        s.record(row, "train_seconds", seconds),
        s.record(row, "ess", ess, n=flat.shape[0]),
        s.record(row, "draws_per_second", ess / seconds, n=flat.shape[0]),
    ]


@eqx.filter_jit
def _sweeps(step: Callable, key: Key[Array, ""], state, num_sweeps: int):
    def sweep(state, key):
        state, _ = step(key, state)
        return state, state.chains.position

    return jax.lax.scan(sweep, state, jax.random.split(key, num_sweeps))


def flow_row(row: Row, judge: Judge, store: Store, observe: Observe) -> list[Record]:
    """Train a coupling flow by reverse KL until the default's seconds are over."""
    s, allowed = judge.settings, _seconds_for(row, judge.settings, store)
    stop = time.monotonic() + allowed
    limits = {"num_steps": 10**7, "log_every": 1000, "deadline": stop}
    algorithm, state, seconds = train_flow(row, judge.target, s, **limits)

    def draw(key: Key[Array, ""], n: int) -> Float[Array, "n dim"]:
        return algorithm.sample(key, state, n)

    return [*judge.scores(row, draw), s.record(row, "train_seconds", seconds)]
