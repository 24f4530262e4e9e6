"""Where no map is good enough, the teacher's particles: near the target, and nearer than plain noise would be."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.base import Target
from pushforward.latents import Normal, NormalMixture
from pushforward.networks import untouched
from pushforward.training import Outcome, mending, phases, teacher
from pushforward.training.repair import Weighing
from pushforward.training.scatter import DROP, MOST, SIZES, can_scatter, lies_low, scattered
from pushforward.training.watching import in_vain

KEY = jax.random.key(0)
DIM, RADIUS, WIDTH = 4, 3.0, 0.1


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
def scatter():
    return scattered(KEY, Shell(), shell_draws())


def test_particles_keep_their_height_and_do_not_repeat(scatter):
    assert isinstance(scatter, NormalMixture)
    x = np.asarray(scatter.sample(jax.random.key(1), 20_000), np.float64)
    # Draws of one population would be the same particles over and over.
    assert MOST // 2 < len(scatter.weights) <= MOST
    assert len(np.unique(np.asarray(scatter.means), axis=0)) > 0.99 * len(scatter.weights)
    radius = np.linalg.norm(x, axis=1)
    assert radius.mean() == pytest.approx(RADIUS, abs=0.02)
    # The mean log density is `-1/2` on the shell, and steps cost what they may.
    assert np.mean(-0.5 * ((radius - RADIUS) / WIDTH) ** 2) > -0.5 - 1.5 * DROP * DIM


def test_the_step_is_as_long_as_it_may_be(scatter):
    size = float(scatter.choleskys[0, 0, 0])
    assert SIZES[-1] < size < SIZES[0]
    # Wider by what one size is more than the next, it would cost too much.
    x = np.asarray(shell_draws()[:8000], np.float64)
    score = (RADIUS / np.linalg.norm(x, axis=1, keepdims=True) - 1.0) * x / WIDTH**2
    longer = 1.5 * size
    far = x + 0.5 * longer**2 * score + longer * np.random.default_rng(2).normal(size=x.shape)
    assert np.mean(-0.5 * ((np.linalg.norm(far, axis=1) - RADIUS) / WIDTH) ** 2) < -0.5 - DROP * DIM


def test_a_map_off_the_shell_lies_low_and_one_on_it_does_not(scatter):
    target, draws = Shell(), shell_draws()
    assert lies_low(KEY, target, Normal(DIM), untouched(DIM), draws)
    assert not lies_low(KEY, target, scatter, untouched(DIM), draws)
    # Where the draws themselves are nowhere, there is nothing to come back to.
    assert not lies_low(KEY, target, Normal(DIM), untouched(DIM), jnp.nan * draws)


def test_a_few_points_outside_the_support_do_not_decide_on_the_step(scatter):
    class HalfShell(Shell):
        def log_density(self, x):
            return jnp.where(x[0] > -2.95, Shell.log_density(self, x), -jnp.inf)

    inside = scattered(KEY, HalfShell(), shell_draws())
    assert np.isfinite(jax.vmap(HalfShell().log_density)(inside.means)).mean() > 0.99
    assert inside.choleskys[0, 0, 0] == pytest.approx(float(scatter.choleskys[0, 0, 0]), rel=0.5)


def test_an_efficient_map_is_kept_whatever_the_teacher_says_of_log_z(monkeypatch):
    monkeypatch.setattr(teacher, "particles_for", lambda target: 1024)
    monkeypatch.setattr(mending, "weigh", lambda *a: Weighing(jnp.asarray(0.9), jnp.asarray(9.0)))
    monkeypatch.setattr(mending, "lies_low", lambda *a: True)
    settings = pf.preset("default", num_steps=2, width=8)
    with pytest.warns(UserWarning, match="`log Z` is 9.00 by the map's draws"):
        done = pf.fit(KEY, pf.targets.gaussian(), settings=settings, progress=False)
    assert "particles" not in done.phases[-1]


@pytest.mark.parametrize(
    ("row", "vain"),
    [
        ({"step": 40, "efficiency": 0.001, "below": 3.0}, True),
        ({"step": 30, "efficiency": 0.001, "below": 3.0}, False),
        ({"step": 10, "efficiency": 0.001, "below": 9.0}, True),
        ({"step": 9, "efficiency": 0.001, "below": 9.0}, False),
        ({"step": 40, "efficiency": 0.02, "below": 9.0}, False),
        ({"step": 40, "efficiency": float("nan"), "below": 9.0}, True),
        ({"step": 40, "efficiency": 0.001, "below": 0.1}, False),
        ({"step": 40, "efficiency": 0.001, "below": float("nan")}, True),
        ({"step": 40}, False),
    ],
)
def test_training_is_given_up_late_and_only_where_draws_lie_low_and_weigh_nothing(row, vain):
    assert in_vain(row, num_steps=100, dim=8) is vain
    assert not in_vain(row, num_steps=100, dim=1000)


def test_a_map_that_is_nowhere_is_given_up_for_particles(monkeypatch):
    monkeypatch.setattr(teacher, "particles_for", lambda target: 1024)
    monkeypatch.setattr(phases, "in_vain", lambda *a: True)
    monkeypatch.setattr(mending, "weigh", lambda *a: Weighing(jnp.asarray(0.01), jnp.asarray(0.0)))
    monkeypatch.setattr(mending, "lies_low", lambda *a: True)
    settings = pf.preset("default", num_steps=80, width=8)
    with pytest.warns(UserWarning, match="the teacher's particles instead"):
        done = pf.fit(KEY, pf.targets.gaussian(), settings=settings, progress=False)
    assert done.outcome is Outcome.INACCURATE
    trained = next(phase for phase in done.phases if phase["phase"] == "train")
    assert (trained["steps"], trained["outcome"]) == (2, "INACCURATE")


def test_a_map_given_up_may_still_be_good(monkeypatch):
    monkeypatch.setattr(teacher, "particles_for", lambda target: 1024)
    monkeypatch.setattr(phases, "in_vain", lambda *a: True)
    settings = pf.preset("default", num_steps=80, width=8)
    done = pf.fit(KEY, pf.targets.gaussian(), settings=settings, progress=False)
    assert done.outcome is Outcome.FINISHED
    assert done.phases[-1]["efficiency"] > 0.9


def test_particles_stand_for_laws_in_few_dimensions_only():
    assert [can_scatter(dim) for dim in (1, 2, 39, 100, 1000)] == [False, True, True, True, False]


def test_a_fit_whose_map_fails_hands_back_particles(monkeypatch, tmp_path):
    """The target is well within reach; that its map has failed is planted."""
    monkeypatch.setattr(teacher, "particles_for", lambda target: 1024)
    monkeypatch.setattr(mending, "weigh", lambda *a: Weighing(jnp.asarray(0.01), jnp.asarray(0.0)))
    monkeypatch.setattr(mending, "lies_low", lambda *a: True)
    target = pf.targets.gaussian()
    with pytest.warns(UserWarning, match=r"0.01 of the map's draws.*the teacher's particles instead"):
        done = pf.fit(KEY, target, settings=pf.preset("default", num_steps=2, width=8), progress=False)
    assert done.outcome is Outcome.INACCURATE
    assert done.phases[-1]["particles"] == len(done.sampler.latent.weights) > 500
    # Nothing is told of the map that was given up but by that name.
    assert done.sampler.about["metrics"].keys() == {"log_z"}
    assert done.phases[-1]["map_efficiency"] == pytest.approx(0.01)
    done.sampler.save(tmp_path / "scatter.pf")
    again = pf.load(tmp_path / "scatter.pf")
    x = np.asarray(again.sample(jax.random.key(2), 10_000))
    np.testing.assert_array_equal(x, done.sampler.sample(jax.random.key(2), 10_000))
    exact = np.asarray(target.sample(jax.random.key(3), 10_000))
    # A thousand particles that share ancestors: moments to about six hundredths.
    assert np.abs(x.mean(0) - exact.mean(0)).max() < 0.25 * exact.std(0).max()
    assert np.abs(x.std(0) / exact.std(0) - 1).max() < 0.2
