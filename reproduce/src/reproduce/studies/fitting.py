"""Training inside of a study, ended by an interrupt, and what is read off it: flows, chains, repeats."""

import time
import traceback
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

import pushforward as pf
from pushforward import Fit, Outcome
from pushforward.base import Algorithm, ExactTarget, Target
from pushforward.draws.netcdf_files import import_arviz
from pushforward.metrics import Protocol
from pushforward.recipe.methods import Method
from pushforward.sampler import Sampler
from pushforward.training import LoopResult, run
from reproduce.studies.row import Draw, Row
from reproduce.studies.store import Store

Ended = TypeVar("Ended", Fit, LoopResult)


def fit_to_the_end(key: Key[Array, ""], target: Target, **choices: Any) -> Fit:
    """Fit, quietly, and hand back whatever came of it but an interruption."""
    return at_its_end(pf.fit(key, target, progress=False, throw=False, **choices))


def kept_or_fitted(
    row: Row,
    target: Target,
    how: Method,
    store: Store,
    tell: Callable[[Fit], dict[str, Any]],
    observe: Callable[[str], None],
    **choices: Any,
) -> Sampler | None:
    """Return the kept sampler of a row, or fit one and keep it with what `tell` says of the fit."""
    kept = store.sampler(row, how)
    if kept is not None:
        return kept
    try:
        done = fit_to_the_end(jax.random.key(row.seed), target, method=how, **choices)
    except Exception:
        observe(f"{row} crashed:\n{traceback.format_exc()}")
        return None
    store.keep(row, how, done.sampler, tell(done))
    return store.sampler(row, how)


@lru_cache(maxsize=1)
def annealed(
    build: Callable[[str], Target], name: str, seed: int, how: Method, budget: str | None = None
) -> Fit:
    """Return a fit that ends before any network: particles, and the mixture of normals that stands for them.

    The last one is kept: it depends on these arguments alone, and all methods of a target begin with it.
    """
    return at_its_end(pf.fit(jax.random.key(seed), build(name), method=how, budget=budget, progress=False))


def particles(done: Fit) -> Float[Array, "n dim"]:
    """Return the particles of an annealed fit, in the target's own coordinates."""
    assert done.state is not None
    assert done.state.draws is not None
    return jax.jit(jax.vmap(done.state.coordinates))(done.state.draws)


def at_its_end(ended: Ended) -> Ended:
    """Return a training that was not interrupted; a sampler half trained is no row of a table."""
    if ended.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    return ended


def told_of_itself(about: dict[str, Any]) -> dict[str, float]:
    """Return what a fit says of its own phases, and its efficiency where it knows it."""
    found = {f"seconds: {phase['phase']}": phase["seconds"] for phase in about.get("phases", [])}
    efficiency = about.get("metrics", {}).get("efficiency")
    return found if efficiency is None else found | {"efficiency": efficiency}


def train_flow(row: Row, target: Target, settings: Any, **limits: Any) -> tuple[Algorithm, Any, float]:
    """Return a coupling flow of the settings' sizes, its trained state and the seconds that took."""
    from reproduce.rivals import flow

    algorithm = flow.algorithm(
        target,
        batch_size=settings.flow_batch_size,
        learning_rate=settings.flow_learning_rate,
        width=settings.flow_width,
    )
    key_init, key_run = jax.random.split(row.key("train"))
    started = time.monotonic()
    result = at_its_end(run(key_run, algorithm, algorithm.init(key_init), **limits))
    return algorithm, result.state, time.monotonic() - started


def size_of(tree: PyTree) -> int:
    """Return how many numbers that can be trained a tree of arrays holds."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)))


def diagnosed(chains: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return effective draws and R-hat of each coordinate (of `most`) of chains `(sweeps, chains, dim)`."""
    arviz = import_arviz()
    # ArviZ counts chains first.
    by_chain = np.swapaxes(chains, 0, 1).astype(np.float64)
    columns = [by_chain[:, :, i] for i in range(by_chain.shape[2])][:most]
    ess = [float(arviz.ess(each, method="bulk")) for each in columns]
    return np.array(ess), np.array([float(arviz.rhat(each)) for each in columns])


def repeated(
    key: Key[Array, ""], protocol: Protocol, draw: Draw, truth: ExactTarget, n: int, repeats: int
) -> np.ndarray:
    """Return a metric of `n` draws, over repeats with fresh draws and fresh references."""
    values = []
    for each in jax.random.split(key, repeats):
        key_draws, key_metric = jax.random.split(each)
        draws = draw(key_draws, n)
        finite = bool(jnp.all(jnp.isfinite(draws)))
        values.append(float(protocol(key_metric, draws, truth)) if finite else np.nan)
    return np.array(values)
