"""What the teacher does from four dimensions on: stops below a peak, moves of some coordinates, more modes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.latents import Normal
from pushforward.targets import correlated_gaussian, funnel_nd
from pushforward.targets.funnel import Funnel
from pushforward.training import Outcome, fit, teacher
from pushforward.training.affine import frame_from_draws
from pushforward.training.lesson import split, stand_in
from pushforward.training.map_rounds import good_map
from pushforward.training.mixture_fit import fit_independent, fit_mixture, mean_log_density
from pushforward.training.moves import exchange, sweeps
from pushforward.training.path import Between, Population
from pushforward.training.peaks import Peaks
from pushforward.training.pulled_back import PulledBack, fit_coupled
from pushforward.training.scout import scout
from pushforward.training.stops import with_stops

DIM = 5


@pytest.fixture(scope="module")
def normal():
    return Target.from_log_density(lambda x: -0.5 * jnp.sum((x - 3.0) ** 2), dim=DIM, name="normal")


def test_stops_hold_the_mass_that_the_peak_of_a_funnel_does_not():
    target = funnel_nd(DIM)
    peaks = scout(jax.random.key(0), target, num_starts=64)
    # The density is highest at -9 (dim - 1) / 2, six deviations out of the law of the first coordinate.
    assert np.all(peaks.points[:, 0] < -10.0)
    stops = with_stops(jax.random.key(1), target, peaks)
    assert np.all(np.abs(stops.points[:10, 0]) < 3.0 * 3.0)
    assert np.median(np.abs(stops.points[:, 0])) < 3.0


@pytest.mark.parametrize("seed", range(2))
def test_stops_of_walks_that_a_neck_of_many_coordinates_draws_in_at_once(seed):
    """Their starts and first steps are looked at too; fifteen steps on, most walks are far away."""
    target = funnel_nd(30)
    peaks = Peaks(-50.0 * np.eye(1, 30), 1e-6 * np.eye(30)[None], np.zeros(1))
    stops = with_stops(jax.random.key(seed), target, peaks)
    best = np.argsort(-stops.log_masses)[:8]
    assert np.abs(stops.points[best, 0]).max() < 3.0


def test_a_peak_that_holds_all_the_mass_stays_alone(normal):
    peaks = scout(jax.random.key(0), normal, num_starts=64)
    assert with_stops(jax.random.key(1), normal, peaks) is peaks


def wells(x):
    """Five independent double wells with shares 0.88 and 0.12, far too high a wall for local moves."""
    return jnp.sum(jnp.logaddexp(-0.5 * ((x - 6.0) / 0.5) ** 2, -0.5 * ((x + 6.0) / 0.5) ** 2 - 2.0))


def test_sweeps_move_single_coordinates_between_wells():
    target = Target.from_log_density(wells, dim=DIM, name="wells")
    rng = np.random.default_rng(0)
    # Half of the particles on either side in every coordinate: 32 modes, all with wrong weights.
    x = jnp.asarray(6.0 * rng.choice([-1.0, 1.0], (4096, DIM)) + 0.5 * rng.normal(size=(4096, DIM)), float)
    start = Normal(DIM)
    values = jax.vmap(target.log_density)(x)
    population = Population(x, values, jax.vmap(start.log_density)(x))
    moved, _, _ = sweeps(
        Between(target, start), jax.random.key(0), population, jnp.asarray(1.0), jnp.asarray(-1.0), 150
    )
    share = np.mean(np.asarray(moved.x) > 0, axis=0)
    # On the way from 0.5 to 1 / (1 + e^-2) = 0.881, with 0.006 of noise each, and never beyond.
    assert np.all((share > 0.8) & (share < 0.91))
    assert np.allclose(np.std(np.abs(np.asarray(moved.x)), axis=0), 0.5, atol=0.03)


def test_many_modes_in_many_dimensions_are_fitted_from_their_peaks():
    rng = np.random.default_rng(1)
    dim, modes = 20, 24
    centres = 10.0 * rng.normal(size=(modes, dim))
    x = jnp.asarray(centres[rng.integers(modes, size=4096)] + rng.normal(size=(4096, dim)), float)
    mixture = fit_mixture(jax.random.key(0), x, modes, centres=jnp.asarray(centres, float))
    # The entropy of the law itself, less what 4,096 rows cannot say.
    exact = np.log(modes) + 0.5 * dim * np.log(2 * np.pi * np.e)
    fresh = jnp.asarray(centres[rng.integers(modes, size=4096)] + rng.normal(size=(4096, dim)), float)
    assert float(mean_log_density(mixture, fresh)) > -exact - 0.6


def test_a_fitted_map_makes_a_funnel_look_normal():
    target = Funnel(DIM, neck=0, neck_mean=0.0, neck_scale=1.0, centre=0.0)
    draws = target.sample(jax.random.key(0), 4096)
    network = fit_coupled(jax.random.key(1), draws, Normal(DIM), num_steps=300)
    seen = PulledBack(target, network)
    z = jax.random.normal(jax.random.key(2), (2048, DIM))
    # By how much the target seen through the map differs from the map's own latent law, constant apart.
    odd = [
        np.std(np.asarray(jax.vmap(q.log_density)(z) - jax.vmap(Normal(DIM).log_density)(z)))
        for q in (target, seen)
    ]
    assert odd[0] > 2.0
    assert odd[1] < 0.5 * odd[0]


def population_of(target, x):
    x, start = jnp.asarray(x, float), Normal(target.dim)
    between = Between(target, start)
    return between, Population(x, *jax.jit(jax.vmap(between.ends))(x))


def test_exchanges_make_independent_coordinates_independent():
    """Particles whose wells all agree: two of 32 modes. Where any exchange is accepted, all modes appear."""
    target = Target.from_log_density(wells, dim=DIM, name="wells")
    rng = np.random.default_rng(1)
    signs = np.where(rng.random((4096, 1)) < 0.88, 1.0, -1.0)
    between, population = population_of(target, 6.0 * signs + 0.5 * rng.normal(size=(4096, DIM)))

    @jax.jit
    def exchanged(population):
        return jax.lax.fori_loop(
            0,
            20,
            lambda i, p: exchange(jax.random.fold_in(jax.random.key(2), i), between, p, 1.0),
            population,
        )

    before, after = (np.sign(np.asarray(p.x)) for p in (population, exchanged(population)))
    assert np.corrcoef(before.T)[0, 1] > 0.999
    # Independent signs have correlations of 0.016; and no coordinate's share has changed.
    correlations = np.corrcoef(after.T)[np.triu_indices(DIM, 1)]
    assert np.abs(correlations).max() < 0.08
    np.testing.assert_array_equal(after.sum(0), before.sum(0))


def test_exchanges_leave_a_correlated_law_as_it_is():
    covariance = 0.4 * np.eye(DIM) + 0.6
    precision = np.linalg.inv(covariance)
    target = Target.from_log_density(lambda x: -0.5 * x @ jnp.asarray(precision, x.dtype) @ x, dim=DIM)
    x = np.random.default_rng(3).multivariate_normal(np.zeros(DIM), covariance, 8192)
    between, population = population_of(target, x)
    keys = jax.random.split(jax.random.key(4), 20)
    moved, _ = jax.jit(lambda p: jax.lax.scan(lambda p, k: (exchange(k, between, p, 1.0), None), p, keys))(
        population
    )
    assert np.mean(np.any(np.asarray(moved.x) != np.asarray(population.x), axis=1)) > 0.5
    # An entry of the sample covariance is within 0.016 of the truth; five of them.
    np.testing.assert_allclose(np.cov(np.asarray(moved.x).T), covariance, atol=0.08)
    values = jax.vmap(target.log_density)(moved.x)
    np.testing.assert_allclose(moved.log_target, values, rtol=1e-3, atol=1e-3)


def test_columns_are_fitted_each_on_its_own():
    rng = np.random.default_rng(5)
    x = np.stack([np.where(rng.random(8192) < 0.2, -4.0, 3.0) + 0.3 * rng.normal(size=8192),
                  rng.normal(size=8192)], axis=1)  # fmt: skip
    law = fit_independent(jnp.asarray(x, float))
    left = np.asarray(law.weights)[0][np.asarray(law.means)[0] < 0].sum()
    assert left == pytest.approx(0.2, abs=0.02)
    # The entropy of both columns; one normal a column would be a nat short in the first.
    truth = -(np.log(0.3) + 2 * 0.5 * np.log(2 * np.pi * np.e)) + 0.2 * np.log(0.2) + 0.8 * np.log(0.8)
    fresh = np.stack([np.where(rng.random(8192) < 0.2, -4.0, 3.0) + 0.3 * rng.normal(size=8192),
                      rng.normal(size=8192)], axis=1)  # fmt: skip
    assert float(mean_log_density(law, jnp.asarray(fresh, float))) == pytest.approx(truth, abs=0.04)


def test_held_out_particles_are_never_learnt_from():
    particles = np.arange(101)
    u = jnp.asarray(np.tile(particles, 4)[:, None], float)
    train, held_out = (set(np.asarray(part)[:, 0].tolist()) for part in split(u))
    assert not train & held_out
    assert train | held_out == set(particles.tolist())


def test_modes_far_apart_are_not_taken_for_a_heavy_tail():
    """A small mode far out lengthens the quantiles; in a bent frame neither mode would be normal."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4 * 1024, 4))
    x[rng.random(len(x)) < 0.08] += 12.0
    peaks = jnp.asarray([[0.0] * 4, [12.0] * 4])
    frame, mixture = stand_in(jax.random.key(7), jnp.asarray(x, float), 8, peaks)
    assert np.all(np.asarray(frame.bend) == 0.0)
    assert mixture.weights.size == 2
    # Planted: by the quantiles alone the frame is bent.
    assert np.any(np.asarray(frame_from_draws(jnp.asarray(x, float)).bend) > 0)


def test_what_a_peaks_curvature_says_all_about_needs_no_particles_and_no_training(normal, monkeypatch):
    monkeypatch.setattr(teacher, "particles_for", lambda target: 1024)
    done = fit(jax.random.key(8), normal, progress=False)
    phases = {phase["phase"]: phase for phase in done.phases}
    assert done.outcome is Outcome.FINISHED
    assert "temperatures" not in phases["teacher"]["rounds"][-1]
    assert phases["train"]["steps"] == 0
    assert len(done.sampler.network.nets) == 1
    assert done.sampler.about["metrics"]["efficiency"] > 0.99
    x = np.asarray(done.sampler.sample(jax.random.key(9), 20_000))
    # Means and standard deviations of 20,000 draws: within 0.035 and 0.025, five standard errors.
    np.testing.assert_allclose(x.mean(0), 3.0, atol=0.035)
    np.testing.assert_allclose(x.std(0), 1.0, atol=0.025)


def test_walks_on_one_hill_are_one_peak_in_many_dimensions():
    # Conditioned so badly that walks coordinate by coordinate stop short of the top, each elsewhere.
    target = correlated_gaussian(jax.random.key(0), 150, 100.0)
    peaks = scout(jax.random.key(1), target)
    assert len(peaks.points) == 1
    deviations = np.linalg.solve(peaks.choleskys[0], peaks.points[0] - np.asarray(target.mean))
    assert np.linalg.norm(deviations) < 0.01


def test_what_is_asked_of_a_law_before_maps_falls_with_the_dimension_but_not_without_end():
    few, many = (np.array([good_map(dim) for dim in dims]) for dims in (range(4, 20), range(20, 101)))
    assert (few == 0.9).all()
    assert (np.diff(many) <= 0).all()
    # As many nats in a coordinate, until a law would be less than 0.4 efficient.
    assert -np.log(good_map(30)) / 30 == pytest.approx(-np.log(good_map(20)) / 20)
    assert good_map(100) == 0.4


@pytest.mark.parametrize("efficiency", [0.5, 0.8])
def test_a_mixture_that_is_good_for_its_dimension_needs_no_maps(monkeypatch, efficiency):
    """In 24 dimensions 0.62 is asked for; what the mixture has is made up."""
    asked = []
    monkeypatch.setattr(teacher, "efficiency_of", lambda *_: jnp.asarray(efficiency))
    monkeypatch.setattr(teacher, "through_maps", lambda *a, **k: asked.append(a) or iter(()))
    two = Target.from_log_density(
        lambda x: jnp.logaddexp(-0.5 * jnp.sum((x - 2.0) ** 2), -0.5 * jnp.sum((x + 2.0) ** 2)), dim=24
    )
    list(teacher.learn(jax.random.key(0), two, num_particles=256))
    assert bool(asked) == (efficiency < 0.62)
