"""How each row is run: the fit, the stages inside it, its steps, and rivals as long as the default took."""

import time
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward import Outcome, targets
from pushforward.base import Target
from pushforward.latents import Uniform
from pushforward.recipe.train import parts_of
from pushforward.sampler import Sampler
from pushforward.training import alternating, run_chunk
from reproduce import records
from reproduce.noise import add_noise, evidence
from reproduce.records import Record, of_recipe
from reproduce.studies.fitting import (
    annealed,
    diagnosed,
    fit_to_the_end,
    kept_or_fitted,
    particles,
    told_of_itself,
    train_flow,
)
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.settings import Settings, case
from reproduce.studies.row import Row, from_pool
from reproduce.studies.running import Observe
from reproduce.studies.store import Store
from reproduce.timing import interleaved

NOISE = 0.02
"""The noise head's size for `log Z`, in units of the frame."""

MAX_WEIGHED_DIM = 64
"""Beyond, the Jacobian of every draw costs more than the estimate tells."""


def default_row(row: Row, judge: Judge, store: Store, observe: Observe) -> list[Record]:
    """`pf.fit(key, target, budget="5m")`, and nothing else; a crash is a record, not the end of the study."""
    s = judge.settings
    how = s.how("default")
    started = time.monotonic()
    kept = kept_or_fitted(
        row, judge.target, how, store, lambda done: {"study_seconds": done.seconds}, observe, budget=s.budget
    )
    if kept is None:
        figures = {"crashed": 1, "train_seconds": time.monotonic() - started}
        return of_recipe(how.recipe, s.figures(row, figures))
    about = kept.about
    return of_recipe(how.recipe, [
        *judge.scores(row, kept.sample),
        *s.figures(row, {
            "crashed": 0,
            "outcome_good": Outcome[about["outcome"]].good,
            "finite": np.isfinite(kept.sample(row.key("finite"), s.moment_n)).all(),
            "train_seconds": about["study_seconds"],
        }),
        s.record(row, "draws_per_second", _rate(kept, row, s.speed_n), n=s.speed_n),
        *s.figures(row, told_of_itself(about)),
        *_evidence(row, judge, kept),
    ])  # fmt: skip


def _rate(sampler: Sampler, row: Row, n: int) -> float:
    """Return draws a second, compiled."""
    return n / interleaved({"draw": lambda: sampler.sample(row.key("speed"), n)}, rounds=3)["draw"].median


def _evidence(row: Row, judge: Judge, sampler: Sampler) -> list[Record]:
    """Return what a noise head finds: `log Z`, its error, and whether the weights can be believed."""
    s, log_z = judge.settings, getattr(judge.target, "log_z", None)
    known = not isinstance(sampler.latent, Uniform) and sampler.dim <= MAX_WEIGHED_DIM
    if "log_z" not in judge.case.asks or log_z is None or not known:
        return []
    noisy = add_noise(row.key("noise"), sampler, NOISE)
    found = evidence(row.key("evidence"), noisy, judge.target, num_draws=s.evidence_n)
    record = partial(s.record, row, n=s.evidence_n)
    return [
        record("log_z_error", abs(found.log_z - float(log_z)), spread=found.log_z_error),
        record("elbo_gap", float(log_z) - found.elbo[0], spread=found.elbo[1]),
        record("noise_efficiency", found.efficiency),
        record("pareto_k", found.k),
    ]


def _target(name: str) -> Target:
    return case(name).build()


def annealed_row(row: Row, judge: Judge, store: Store, observe: Observe) -> list[Record]:
    """Judge what the stages before the training find: particles (`smc`), or the mixture fitted to them."""
    s = judge.settings
    how = s.how("annealed")
    done = annealed(_target, row.target, row.seed, how, s.budget)
    found, extra = done.state, []
    assert found is not None
    if row.method == "smc":
        pool = particles(done)
        draw, most = from_pool(pool), pool.shape[0]
        log_z = getattr(judge.target, "log_z", None)
        if log_z is not None and found.log_z is not None:
            extra = [s.record(row, "log_z_error", abs(found.log_z - float(log_z)))]
    else:
        # Without the map that particles were seen through, if there is one.
        draw, most = found.replace(network=None).sampler().sample, None
    records = [*judge.scores(row, draw, most), s.record(row, "train_seconds", done.seconds), *extra]
    return of_recipe(how.recipe, records)


def steps_row(row: Row, settings: Settings) -> list[Record]:
    """Time a training step of the default on a Gaussian of this dimension: its own choices, compiled."""
    dim = int(row.target.removeprefix("gaussian_").removesuffix("d"))
    target = targets.correlated_gaussian(jax.random.key(0), dim, 100.0)
    how = settings.how("default")
    done = fit_to_the_end(jax.random.key(0), target, method=how.replace(num_steps=2))
    assert done.state is not None
    key_parts, key_draws, key_steps = jax.random.split(row.key("steps"), 3)
    # The network that it would train, even where there is nothing to learn.
    found = done.state.replace(network=None, draws=jax.random.normal(key_draws, (4096, dim)))
    algorithm = alternating(parts_of(key_parts, found, done.settings))
    state = algorithm.init(key_steps)
    count, first = settings.step_count, jnp.asarray(0)
    steps = lambda: run_chunk(algorithm, key_steps, state, first, jnp.asarray(count))  # noqa: E731
    seconds = interleaved({"steps": steps}, rounds=3)["steps"].median / count
    return of_recipe(how.recipe, [settings.record(row, "step_seconds", seconds, n=count)])


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
