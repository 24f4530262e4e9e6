"""Rows that train no network of their own: around the default, of exact draws, chains and particles."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Algorithm
from pushforward.draws import thin
from pushforward.metrics import ksd_imq_v
from reproduce.records import Record, of_recipe
from reproduce.studies.fitting import particles
from reproduce.studies.row import Row, from_pool
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.recipes import recipe
from reproduce.studies.two_d.trained import chain_draws, one_shot_row, sampler_of
from reproduce.studies.two_d.watch import Store, particles_of, watch


def default_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """`fit` asked for nothing; on the first seed its training is watched once more, for a figure."""
    found = one_shot_row(row, judge, store)
    if row.seed == 0:
        curve = watch(row.target, 0, recipe(row.method, judge.settings), judge.settings).curve
        store.add({f"curve/{row.method}/{row.target}": curve})
    return found


def annealed_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Judge the particles, or the mixture of normals fitted to them: no network in either."""
    done = particles_of(row.target, row.seed, judge.settings)
    draw = from_pool(particles(done)) if row.method == "smc" else done.sampler.sample
    if row.seed == 0:
        store.add_draws(row, draw)
    return of_recipe(recipe("default", judge.settings).recipe, [
        judge.paper_ksd(row, draw),
        *judge.scores(row, draw),
        judge.settings.record(row, "train_seconds", done.seconds),
    ])  # fmt: skip


def thin_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Judge a few draws thinned out of a large one-shot pool."""
    sampler, seconds = sampler_of(row._replace(method="default"), judge, store)
    s = judge.settings

    def draw(key: Key[Array, ""], n: int) -> Float[Array, "n dim"]:
        return thin(sampler.sample(key, s.pool_n), judge.target, n)

    if row.seed == 0:
        store.add_draws(row, draw, s.thin_n)
    metrics = ("sliced_w2", *(("mode_weight_error",) if row.target == "mog2" else ()))
    return of_recipe(recipe("default", s).recipe, [
        judge.score(row, "ksd_imq_v", draw, s.thin_n, s.chain_repeats),
        *(judge.score(row, metric, draw, s.thin_n, s.pairs) for metric in metrics),
        s.record(row, "train_seconds", seconds),
    ])  # fmt: skip


def sobol_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Means and second moments from scrambled Sobol latents, against those from independent ones."""
    sampler, seconds = sampler_of(row._replace(method="default"), judge, store)
    s = judge.settings
    keys = jax.random.split(row.key("randomisations"), s.sobol_repeats)
    truth, scale = _moments_and_scales(judge)
    errors = {
        latents: np.array([
            (_moments(sampler.sample(key, s.sobol_n, latents=latents)) - truth) / scale for key in keys
        ])
        for latents in ("sobol", "iid")
    }  # fmt: skip
    dim = judge.target.dim
    parts = {"rmse_mean": slice(dim), "rmse_second": slice(dim, None)}
    return of_recipe(recipe("default", s).recipe, [
        judge.score(row, "ksd_imq_v", lambda k, n: sampler.sample(k, n, latents="sobol"), s.ksd_n, s.pairs),
        *(_rmse(row, judge, m, errors["sobol"][:, p], errors["iid"][:, p]) for m, p in parts.items()),
        s.record(row, "train_seconds", seconds),
    ])  # fmt: skip


def _rmse(row: Row, judge: Judge, metric: str, sobol: np.ndarray, iid: np.ndarray) -> Record:
    """Root mean square errors against the truth; the spread is what is left without the sampler's bias."""
    s = judge.settings
    return s.record(
        row, metric, np.sqrt(np.mean(sobol**2)), spread=float(np.sqrt(np.mean(sobol.var(axis=0, ddof=1)))),
        n=s.sobol_n, repeats=s.sobol_repeats, floor=float(np.sqrt(np.mean(iid**2))),
    )  # fmt: skip


def _moments(draws: Float[Array, "n dim"]) -> np.ndarray:
    """Return the mean and all products of two coordinates, in double precision."""
    x = np.asarray(draws, np.float64)
    i, j = np.triu_indices(x.shape[1])
    return np.concatenate([x.mean(0), (x[:, i] * x[:, j]).mean(0)])


def _moments_and_scales(judge: Judge) -> tuple[np.ndarray, np.ndarray]:
    """Return the true moments, and their units: standard deviations, and products of two of them."""
    assert judge.target.mean is not None
    assert judge.target.covariance is not None
    mean, cov = (np.asarray(a, np.float64) for a in (judge.target.mean, judge.target.covariance))
    i, j = np.triu_indices(len(mean))
    sd = np.sqrt(np.diag(cov))
    truth = np.concatenate([mean, cov[i, j] + mean[i] * mean[j]])
    return truth, np.concatenate([sd, sd[i] * sd[j]])


def exact_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Exact draws, judged like everyone else: what is left is noise."""
    store.add_density(judge.target)
    store.add_draws(row, judge.target.sample)
    return [judge.paper_ksd(row, judge.target.sample), *judge.scores(row, judge.target.sample)]


def algorithm_of(method: str, judge: Judge, num_chains: int) -> Algorithm:
    """Return Langevin dynamics, HMC or SVGD with the paper's settings, which are their defaults."""
    from reproduce.rivals import hmc, langevin, svgd

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
