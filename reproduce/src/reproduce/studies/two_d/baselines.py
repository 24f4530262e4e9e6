"""Rows of the methods to beat that train nothing: exact draws, chains and particles."""

import jax
import jax.numpy as jnp
import numpy as np

from pushforward.base import Algorithm
from pushforward.metrics import ksd_imq_v
from reproduce.records import Record
from reproduce.studies.row import Row, from_pool
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.store import Store
from reproduce.studies.two_d.trained import chain_draws


def exact_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Exact draws, judged like everyone else: what is left is noise."""
    store.add_density(judge.target)
    store.add_draws(row, judge.target.sample)
    return [judge.paper_ksd(row, judge.target.sample), *judge.scores(row, judge.target.sample)]


def algorithm_of(method: str, judge: Judge, num_chains: int) -> Algorithm:
    """Return Langevin dynamics, HMC or SVGD with the paper's settings, which are their defaults."""
    from pushforward.mcmc import hmc
    from reproduce.rivals import langevin, svgd

    if method == "svgd":
        return svgd.algorithm(judge.target, num_particles=num_chains)
    return {"ld": langevin, "hmc": hmc}[method].algorithm(judge.target, num_chains=num_chains)


def chain_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Independent runs: the paper's KSD of each, everything else of all their draws together."""
    s = judge.settings
    draw = chain_draws(algorithm_of(row.method, judge, s.ksd_n), s.chain_steps)
    runs = [draw(key, s.ksd_n) for key in jax.random.split(row.key("runs"), s.chain_repeats)]
    good = [bool(jnp.all(jnp.isfinite(x))) for x in runs]
    ksds = [float(ksd_imq_v(x, judge.target)) if ok else np.nan for x, ok in zip(runs, good, strict=True)]
    pool = from_pool(jnp.concatenate(runs))
    store.add({f"draws/{row.method}/{row.target}": np.asarray(runs[0], np.float32)})
    return [
        s.record(row, "ksd_imq_v", np.array(ksds), n=s.ksd_n, floor=judge.floor("ksd_imq_v", s.ksd_n)),
        *judge.scores(row, pool, pair_n=s.ksd_n * s.chain_repeats),
    ]
