"""How each row of ours is run: the fit, the stages inside it, and its steps."""

import time
from functools import partial

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
from reproduce.studies.fitting import annealed, fit_to_the_end, kept_or_fitted, told_of_itself
from reproduce.studies.hard.cases import case
from reproduce.studies.hard.judge import Judge
from reproduce.studies.hard.settings import Settings
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
        assert found.draws is not None
        pool = jax.jit(jax.vmap(found.coordinates))(found.draws)
        draw, most = from_pool(pool), pool.shape[0]
        log_z = getattr(judge.target, "log_z", None)
        if log_z is not None and found.log_z is not None:
            extra = [s.record(row, "log_z_error", abs(found.log_z - float(log_z)))]
    else:
        # Without the map that particles were seen through, if there is one.
        draw, most = found.replace(network=None).sampler().sample, None
    records = [
        *judge.scores(row, draw, most),
        s.record(row, "train_seconds", done.seconds),
        *extra,
    ]
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
