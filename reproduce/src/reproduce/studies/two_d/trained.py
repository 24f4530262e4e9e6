"""Rows that train a network: one-shot samplers of ours and of the paper, and the coupling flow."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Algorithm
from pushforward.sampler import Sampler
from reproduce.records import Record, of_recipe
from reproduce.rivals.chains import run_chunk
from reproduce.studies.fitting import fit_to_the_end, size_of, train_flow
from reproduce.studies.row import Draw, Row
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.recipes import recipe
from reproduce.studies.two_d.settings import PAPERS
from reproduce.studies.two_d.watch import Store, watch


def sampler_of(row: Row, judge: Judge, store: Store) -> tuple[Sampler, float]:
    """Return the row's sampler and its training seconds, training it if it must be."""
    how = recipe(row.method, judge.settings)
    kept = store.sampler(row, how)
    if kept is not None:
        return kept, kept.about["study_seconds"]
    if row.method in PAPERS:
        watched = watch(row.target, row.seed, how, judge.settings, look=_selects(row))
        sampler, seconds = watched.sampler, watched.seconds
        if _selects(row):
            store.add({_curve(row): watched.curve})
    else:
        done = fit_to_the_end(jax.random.key(row.seed), judge.target, method=how)
        sampler, seconds = done.sampler, done.seconds
    store.keep(row, how, sampler, {"study_seconds": seconds})
    return sampler, seconds


def one_shot_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Train, then judge the last sampler."""
    sampler, seconds = sampler_of(row, judge, store)
    if row.seed == 0:
        store.add_draws(row, sampler.sample)
    return of_recipe(recipe(row.method, judge.settings).recipe, [
        judge.paper_ksd(row, sampler.sample),
        *([_best(row, judge, store.curve(_curve(row)))] if _selects(row) else []),
        *judge.scores(row, sampler.sample),
        *judge.settings.figures(row, {"train_seconds": seconds, "parameters": size_of(sampler.network)}),
    ])  # fmt: skip


def flow_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Train the coupling flow in the target's own coordinates, as the paper does, and judge it."""
    algorithm, state, seconds = flow_of(row, judge)

    def draw(key: Key[Array, ""], n: int) -> Float[Array, "n dim"]:
        return algorithm.sample(key, state, n)

    if row.seed == 0:
        store.add_draws(row, draw)
    figures = {"train_seconds": seconds, "parameters": size_of(state.trained)}
    return [judge.paper_ksd(row, draw), *judge.scores(row, draw), *judge.settings.figures(row, figures)]


def flow_of(row: Row, judge: Judge, most: int | None = None) -> tuple[Algorithm, Any, float]:
    """Return the flow's algorithm, its state after its steps, or the `most`, and the seconds that took."""
    steps = judge.settings.steps(most or judge.settings.flow_steps)
    return train_flow(row, judge.target, judge.settings, num_steps=steps, log_every=max(1, steps // 10))


def chain_draws(algorithm: Algorithm, num_steps: int) -> Draw:
    """Return `draw(key, n)`: start, `num_steps` iterations and the draws, as one compiled program."""

    @eqx.filter_jit
    def go(algorithm: Algorithm, key: Key[Array, ""], n: int) -> Float[Array, "n dim"]:
        key_init, key_steps, key_draws = jax.random.split(key, 3)
        state, _ = run_chunk(algorithm, key_steps, algorithm.init(key_init), jnp.asarray(0), num_steps)
        return algorithm.sample(key_draws, state, n)

    return lambda key, n: go(algorithm, key, n)


def _selects(row: Row) -> bool:
    """Whether the row is also judged by the paper's protocol, the best of its checkpoints."""
    return row.method in PAPERS and row.seed == 0


def _curve(row: Row) -> str:
    return f"curve/{row.method}/{row.target}"


def _best(row: Row, judge: Judge, curve: np.ndarray) -> Record:
    """Follow the paper's protocol: of all checkpoints, take the one with the lowest mean."""
    means = np.where(np.isfinite(curve[:, 1]), curve[:, 1], np.inf)
    best = int(np.argmin(means))
    s = judge.settings
    return s.record(
        row, "ksd_imq_v_best", curve[best, 1], spread=float(curve[best, 2]), n=s.ksd_n,
        repeats=s.checkpoint_repeats, floor=judge.selection_floor(),
    )  # fmt: skip
