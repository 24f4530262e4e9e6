"""How each row of ours is run: the fit, the stages inside it, and its steps."""

import time
import traceback

import jax
import jax.numpy as jnp
import numpy as np

from pushforward import Outcome, targets
from pushforward.base import Target
from pushforward.latents import Uniform
from pushforward.recipe.train import parts_of
from pushforward.sampler import Sampler
from pushforward.training import alternating, run_chunk
from reproduce.noise import add_noise, evidence
from reproduce.records import Record, of_recipe
from reproduce.studies.drawing import from_pool
from reproduce.studies.fitting import annealed, fit_to_the_end
from reproduce.studies.hard.cases import case
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.rivals import Observe
from reproduce.studies.hard.rows import record_of
from reproduce.studies.hard.settings import Settings
from reproduce.studies.row import Row
from reproduce.studies.store import Store

NOISE = 0.02
"""The noise head's size for `log Z`, in units of the frame."""

MAX_WEIGHED_DIM = 64
"""Beyond, the Jacobian of every draw costs more than the estimate tells."""


def default_row(row: Row, judge: Judge, store: Store, observe: Observe) -> list[Record]:
    """`pf.fit(key, target, budget="5m")`, and nothing else; a crash is a record, not the end of the study."""
    s = judge.settings
    how = s.how("default")
    kept = store.sampler(row, how)
    if kept is None:
        started = time.monotonic()
        try:
            done = fit_to_the_end(jax.random.key(row.seed), judge.target, method=how, budget=s.budget)
        except Exception:
            observe(f"{row} crashed:\n{traceback.format_exc()}")
            seconds = time.monotonic() - started
            figures = {"crashed": 1, "train_seconds": seconds}
            return of_recipe(how.recipe, [judge.record(row, name, value) for name, value in figures.items()])
        store.keep(row, how, done.sampler, {"study_seconds": done.seconds})
        kept = store.sampler(row, how)
        assert kept is not None
    about = kept.about
    good = Outcome[about["outcome"]].good
    return of_recipe(how.recipe, [
        *judge.scores(row, kept.sample),
        judge.record(row, "crashed", 0),
        judge.record(row, "outcome_good", int(good)),
        judge.record(row, "finite", float(np.isfinite(kept.sample(row.key("finite"), s.moment_n)).all())),
        judge.record(row, "train_seconds", about["study_seconds"]),
        judge.record(row, "draws_per_second", _rate(kept, row, s.speed_n), n=s.speed_n),
        *_phases(row, judge, about),
        *_evidence(row, judge, kept),
    ])  # fmt: skip


def _rate(sampler: Sampler, row: Row, n: int) -> float:
    """Return draws a second, compiled."""
    sampler.sample(row.key("warm"), n)
    seconds = []
    for i in range(3):
        started = time.monotonic()
        jax.block_until_ready(sampler.sample(jax.random.fold_in(row.key("speed"), i), n))
        seconds.append(time.monotonic() - started)
    return n / float(np.median(seconds))


def _phases(row: Row, judge: Judge, about: dict) -> list[Record]:
    """Return what the fit says of its own phases."""
    found = [judge.record(row, f"seconds: {p['phase']}", p["seconds"]) for p in about.get("phases", [])]
    efficiency = about.get("metrics", {}).get("efficiency")
    return found + ([] if efficiency is None else [judge.record(row, "efficiency", efficiency)])


def _evidence(row: Row, judge: Judge, sampler: Sampler) -> list[Record]:
    """Return what a noise head finds: `log Z`, its error, and whether the weights can be believed."""
    log_z = getattr(judge.target, "log_z", None)
    known = not isinstance(sampler.latent, Uniform) and sampler.dim <= MAX_WEIGHED_DIM
    if "log_z" not in judge.case.asks or log_z is None or not known:
        return []
    noisy = add_noise(row.key("noise"), sampler, NOISE)
    found = evidence(row.key("evidence"), noisy, judge.target, num_draws=judge.settings.evidence_n)
    n = judge.settings.evidence_n
    return [
        judge.record(row, "log_z_error", abs(found.log_z - float(log_z)), n=n, spread=found.log_z_error),
        judge.record(row, "elbo_gap", float(log_z) - found.elbo[0], n=n, spread=found.elbo[1]),
        judge.record(row, "noise_efficiency", found.efficiency, n=n),
        judge.record(row, "pareto_k", found.k, n=n),
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
        assert found.draws is not None
        pool = jax.jit(jax.vmap(found.coordinates))(found.draws)
        draw, most = from_pool(pool), pool.shape[0]
        log_z = getattr(judge.target, "log_z", None)
        if log_z is not None and found.log_z is not None:
            extra = [judge.record(row, "log_z_error", abs(found.log_z - float(log_z)))]
    else:
        # Without the map that particles were seen through, if there is one.
        draw, most = found.replace(network=None).sampler().sample, None
    records = [*judge.scores(row, draw, most), judge.record(row, "train_seconds", done.seconds), *extra]
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
    count = jnp.asarray(settings.step_count)
    jax.block_until_ready(run_chunk(algorithm, key_steps, state, jnp.asarray(0), jnp.asarray(1)))
    seconds = []
    for _ in range(3):
        started = time.monotonic()
        jax.block_until_ready(run_chunk(algorithm, key_steps, state, jnp.asarray(0), count))
        seconds.append((time.monotonic() - started) / settings.step_count)
    figure = record_of(settings, row, "step_seconds", np.median(seconds), n=settings.step_count)
    return of_recipe(how.recipe, [figure])
