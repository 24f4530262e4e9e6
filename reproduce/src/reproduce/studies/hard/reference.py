"""Trusted draws where nothing is exact: long NUTS for posteriors, replica exchange for many modes."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from pushforward.base import Target
from reproduce.records import Record
from reproduce.studies.fitting import diagnosed
from reproduce.studies.hard.settings import NUTS, Case, Settings, case
from reproduce.studies.row import Row
from reproduce.studies.store import Store

PIECES = 10  # replica exchange is run in so many calls of one program


def reference_draws(name: str, settings: Settings, store: Store) -> dict[str, np.ndarray]:
    """Return the trusted draws of a target (`draws`) and how they were made; kept ones if there are any."""
    found, started, place = case(name), time.monotonic(), reference_name(name, settings)
    kept = store.arrays(place)
    if kept is None:
        target = found.build()
        chains = (long_nuts if found.truth == NUTS else _tempering)(target, found, settings)
        seconds = time.monotonic() - started
        # Sweep by sweep, so that a cut of the set holds all chains.
        flat = chains.reshape(-1, target.dim)[: settings.reference_n]
        kept = {"draws": flat.astype(np.float32), "seconds": np.array(seconds), **_diagnosed(chains, target)}
        store.keep_arrays(place, kept)
    return kept


def reference_name(name: str, settings: Settings) -> str:
    """Return the name under which the reference of a target is kept."""
    s = settings
    thin = s.reference_nuts_thin if case(name).truth == NUTS else s.reference_thin
    return f"reference-{name}-{s.reference_n}-{s.reference_chains}-{s.reference_warmup}-{thin}"


def reference_row(row: Row, settings: Settings, store: Store) -> list[Record]:
    """Make the reference and record how far it can be trusted."""
    kept = reference_draws(row.target, settings, store)
    n = len(kept["draws"])
    return [
        settings.record(row, "rhat", float(kept["rhat"]), n=n),
        settings.record(row, "ess", float(kept["ess"]), n=n),
        settings.record(row, "reference_seconds", float(kept["seconds"])),
    ]


def long_nuts(target: Target, found: Case, s: Settings) -> np.ndarray:
    """Return thinned draws of long chains, `(sweeps, chains, dim)`."""
    from pushforward.payback import nuts

    algorithm = nuts.algorithm(
        target, num_chains=s.reference_chains, num_warmup=s.reference_warmup, initial_scale=found.start_scale
    )
    key_init, key_draws = jax.random.split(Row("reference", target.name, 0).key("chains"))
    state = eqx.filter_jit(algorithm.init)(key_init)
    whole = s.reference_n - s.reference_n % s.reference_chains
    flat = np.asarray(algorithm.sample(key_draws, state, s.reference_nuts_thin * whole))
    return flat.reshape(-1, s.reference_nuts_thin, s.reference_chains, target.dim)[:, -1]


def _tempering(target: Target, found: Case, s: Settings) -> np.ndarray:
    from pushforward.mcmc.replicas import cold_positions
    from reproduce.rivals import tempering

    chains = 2 * s.reference_chains
    algorithm = tempering.algorithm(
        target,
        num_chains=chains,
        num_warmup=s.reference_warmup * s.reference_thin,
        initial_scale=found.start_scale,
    )
    key_init, key_run = jax.random.split(Row("reference", target.name, 0).key("replicas"))
    state = eqx.filter_jit(algorithm.init)(key_init)
    kept = -(-s.reference_n // chains)
    piece, warmup = -(-kept // PIECES), s.reference_warmup
    pieces = []
    # The warm-up in pieces of the same size, so that one program serves both.
    for number in range(-(-warmup // piece) + PIECES):
        first = jnp.asarray(number * piece)
        state, draws, _ = cold_positions(algorithm.step, key_run, state, first, piece, s.reference_thin)
        if number * piece >= warmup:
            pieces.append(np.asarray(draws))
    return np.concatenate(pieces)[:kept]


def _diagnosed(chains: np.ndarray, target: Target) -> dict[str, np.ndarray]:
    """Return the worst split R-hat and the fewest effective draws, of what symmetries leave alone."""
    if hasattr(target, "energy"):
        # Coordinates of exchangeable particles say nothing: the energy and the largest distance do.
        flat = chains.reshape(-1, target.dim)
        energy = np.asarray(jax.jit(jax.vmap(target.energy))(jax.device_put(flat)))  # pyright: ignore
        shown = np.stack([energy, np.abs(flat).max(axis=1)], axis=-1).reshape(*chains.shape[:2], 2)
    else:
        shown = chains
    ess, rhat = diagnosed(shown)
    return {"rhat": np.array(np.nanmax(rhat)), "ess": np.array(np.nanmin(ess))}
