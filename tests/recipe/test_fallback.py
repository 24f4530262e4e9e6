"""Where no map is good enough, the annealed particles: near the target, and nearer than plain noise would be."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick import quick

import pushforward as pf
from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.latents import Normal, NormalMixture
from pushforward.networks import Identity
from pushforward.recipe.fallback import around_particles
from pushforward.recipe.judge import lies_low
from pushforward.recipe.parts import build_parts
from pushforward.recipe.state import State, standard
from pushforward.training import Outcome

KEY = jax.random.key(0)
DIM, RADIUS, WIDTH = 4, 3.0, 0.1
RECIPE = pf.Recipe()
NUMBERS = RECIPE.fallback


class Shell(Target):
    """`|x|` near three, in all directions alike."""

    dim: int = eqx.field(static=True, default=DIM)
    name: str = eqx.field(static=True, default="shell")

    def log_density(self, x):
        return -0.5 * ((jnp.sqrt(jnp.sum(x**2)) - RADIUS) / WIDTH) ** 2


def shell_draws(n=20_000):
    rng = np.random.default_rng(1)
    towards = rng.normal(size=(n, DIM))
    radius = RADIUS + WIDTH * rng.normal(size=(n, 1))
    return jnp.asarray(radius * towards / np.linalg.norm(towards, axis=1, keepdims=True), jnp.float32)


@pytest.fixture(scope="module")
def particles():
    return around_particles(KEY, Shell(), shell_draws(), RECIPE)


def test_particles_keep_their_height_and_do_not_repeat(particles):
    assert isinstance(particles, NormalMixture)
    x = np.asarray(particles.sample(jax.random.key(1), 20_000), np.float64)
    # Draws of one population would be the same particles over and over.
    assert NUMBERS.most // 2 < len(particles.weights) <= NUMBERS.most
    assert len(np.unique(np.asarray(particles.means), axis=0)) > 0.99 * len(particles.weights)
    radius = np.linalg.norm(x, axis=1)
    assert radius.mean() == pytest.approx(RADIUS, abs=0.02)
    # The mean log density is `-1/2` on the shell, and steps cost what they may.
    assert np.mean(-0.5 * ((radius - RADIUS) / WIDTH) ** 2) > -0.5 - 1.5 * NUMBERS.drop * DIM


def test_the_step_is_as_long_as_it_may_be(particles):
    size = float(particles.choleskys[0, 0, 0])
    longest, shortest = NUMBERS.step_range
    assert shortest < size < longest
    # Wider by what one size is more than the next, it would cost too much.
    x = np.asarray(shell_draws()[:8000], np.float64)
    score = (RADIUS / np.linalg.norm(x, axis=1, keepdims=True) - 1.0) * x / WIDTH**2
    longer = 1.5 * size
    far = x + 0.5 * longer**2 * score + longer * np.random.default_rng(2).normal(size=x.shape)
    lowered = np.mean(-0.5 * ((np.linalg.norm(far, axis=1) - RADIUS) / WIDTH) ** 2)
    assert lowered < -0.5 - NUMBERS.drop * DIM


SETTINGS = pf.preset("kl", frame="identity", extra_latents=0, width=4, score_width=4)


def test_a_map_off_the_shell_lies_low_and_one_on_it_does_not(particles):
    def low(latent, draws):
        parts = dataclasses.replace(build_parts(KEY, Shell(), SETTINGS), latent=latent)
        state = State(target=Shell(), parts=parts, network=Identity(DIM))
        return lies_low(np.random.default_rng(0), state, draws, RECIPE)

    assert low(Normal(DIM), shell_draws())
    assert not low(particles, shell_draws())
    # Where the draws themselves are nowhere, there is nothing to come back to.
    assert not low(Normal(DIM), jnp.nan * shell_draws())


def test_a_few_points_outside_the_support_do_not_decide_on_the_step(particles):
    class HalfShell(Shell):
        def log_density(self, x):
            return jnp.where(x[0] > -2.95, Shell.log_density(self, x), -jnp.inf)

    inside = around_particles(KEY, HalfShell(), shell_draws(), RECIPE)
    assert np.isfinite(jax.vmap(HalfShell().log_density)(inside.means)).mean() > 0.99
    assert inside.choleskys[0, 0, 0] == pytest.approx(float(particles.choleskys[0, 0, 0]), rel=0.5)


FEW = {"num_steps": 80, "width": 8, "batch_size": 64, "annealing.num_particles": 1024}
"""Fits that begin at a state in which the particles are made up, and learn next to nothing."""


def fit(target, latent, draws, log_z=0.0, **changes):
    start = State(
        target=target, frame=Frame.identity(DIM), latent=latent, draws=draws, log_z=log_z, good=True
    )
    return pf.fit(KEY, target, method=quick(**FEW | changes), start=start, progress=False)


def normal():
    return Target.from_log_density(standard(DIM).log_density, dim=DIM, name="normal")


def trained(done):
    return next(phase for phase in done.phases if phase["phase"] == "train")


def test_an_efficient_map_is_kept_whatever_the_particles_say_of_log_z():
    """Particles that lie at the very top, higher than any draws; and whose mass is another."""
    low = {"judge.low": 0.0, "judge.low_each": 0.0, "num_steps": 2}
    with pytest.warns(UserWarning, match="`log Z` is -?0.00 by the map's draws and -9.00"):
        done = fit(normal(), standard(DIM), jnp.zeros((1024, DIM)), log_z=-9.0, **low)
    assert done.outcome is Outcome.INACCURATE
    assert "particles" not in done.phases[-1]
    assert done.phases[-1]["efficiency"] > 0.8


def test_a_map_given_up_may_still_be_good():
    """No look is good enough, and no draws lie high enough, not to be given up at once."""
    changes = {"judge.in_vain": 2.0, "judge.low": -1e9, "judge.impatience": 0.0, "judge.patience": 0.0}
    done = fit(normal(), standard(DIM), standard(DIM).sample(KEY, 1024), **changes, **{"judge.learnt": 2.0})
    assert (trained(done)["steps"], trained(done)["outcome"]) == (2, "INACCURATE")
    assert done.outcome is Outcome.FINISHED
    assert done.phases[-1]["efficiency"] > 0.9


AWAY = 30.0


@pytest.fixture(scope="module")
def given_up():
    """A fit whose latents are nowhere near the target, and whose particles are draws of it."""
    law = NormalMixture(jnp.ones(1), jnp.full((1, DIM), AWAY), jnp.eye(DIM)[None])
    target = Target.from_log_density(law.log_density, dim=DIM, name="away")
    with pytest.warns(UserWarning, match=r"of the map's draws is effective.*annealed particles instead"):
        return fit(target, standard(DIM), law.sample(KEY, 4096), learning_rate=1e-6)


def test_a_map_that_is_nowhere_is_given_up_for_particles(given_up):
    assert given_up.outcome is Outcome.INACCURATE
    # A tenth of all steps.
    assert (trained(given_up)["steps"], trained(given_up)["outcome"]) == (8, "INACCURATE")
    assert [phase["phase"] for phase in given_up.phases] == ["train", "reweight", "fallback"]


def test_a_fit_whose_map_fails_hands_back_particles(given_up, tmp_path):
    done = given_up
    assert done.phases[-1]["particles"] == len(done.sampler.latent.weights) > 500
    # Nothing is told of the map that was given up but by that name.
    assert done.sampler.about["metrics"].keys() == {"log_z"}
    assert not done.phases[-1]["map_efficiency"] > 0.01
    done.sampler.save(tmp_path / "particles.pf")
    again = pf.load(tmp_path / "particles.pf")
    x = np.asarray(again.sample(jax.random.key(2), 10_000))
    np.testing.assert_array_equal(x, done.sampler.sample(jax.random.key(2), 10_000))
    # Thousands of particles of a few dozen walks: moments to a few hundredths.
    assert np.abs(x.mean(0) - AWAY).max() < 0.25
    assert np.abs(x.std(0) - 1.0).max() < 0.2
