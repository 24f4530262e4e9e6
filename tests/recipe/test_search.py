"""Where walks upmode end: at the top of bent ridges, and on every mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.host import generator
from pushforward.recipe.peaks import Peaks, foremost, to_the_top
from pushforward.recipe.search import find_peaks, unexplained_places
from pushforward.recipe.table import Search
from pushforward.targets import Mixture, correlated_gaussian
from reproduce.targets import random_target

pytestmark = pytest.mark.quick_compilation


SEARCH = Search()
FEW = SEARCH.replace(looks=2**12)


@pytest.fixture(scope="module")
def bent():
    # Eight dimensions, bent in pairs, scales from 0.007 to 32, shifted by up to 9,000 of them.
    return random_target(10)


def test_walks_along_a_bent_ridge_reach_its_top(bent):
    peaks = find_peaks(jax.random.key(1), bent)
    best_of_many = float(jnp.max(jax.vmap(bent.log_density)(bent.sample(jax.random.key(0), 20_000))))
    assert peaks.log_densities[0] > best_of_many


def test_modes_hidden_behind_wider_ones_are_found():
    target = random_target(11)
    peaks = find_peaks(jax.random.key(1), target)
    u = (peaks.points - np.asarray(target.centre)) / np.asarray(target.scale)
    y = np.arcsinh(np.asarray(target.tails) * u) / np.asarray(target.tails)
    origins = np.asarray(jax.vmap(lambda point: target._bent(point, -1.0))(jnp.asarray(y, float)))
    # Where peaks come from in the mixture, whose components are five deviations apart.
    apart = np.linalg.norm(origins[:, None] - np.asarray(target.base.means), axis=2)
    assert (apart.min(axis=0) < 1.0).all()


@pytest.fixture(scope="module")
def unlike():
    """Twelve normals in ten dimensions, correlated, whose deviations differ by up to three times."""
    rng = np.random.default_rng(0)
    means, sizes = rng.uniform(-20.0, 20.0, (12, 10)), rng.uniform(0.3, 3.0, 12)
    covariances = np.stack([size * np.cov(rng.normal(size=(10, 30))) for size in sizes])
    return Mixture(np.full(12, 1 / 12), means, covariances), np.linalg.cholesky(covariances)


def found(target, peaks):
    apart = np.linalg.norm(peaks.points[:, None] - np.asarray(target.means), axis=2)
    return int(np.sum(apart.min(axis=0) < 0.5))


def test_narrow_modes_among_wide_ones_are_found_where_walks_alone_miss_them(unlike):
    target, _ = unlike
    few = Search(num_walks=48)
    assert found(target, find_peaks(jax.random.key(1), target, few)) == 12
    # No place lies so high above what known peaks explain.
    alone = few.replace(unexplained=float("inf"))
    assert found(target, find_peaks(jax.random.key(1), target, alone)) < 9


def test_places_that_known_peaks_explain_are_none_to_walk_from(unlike):
    target, choleskys = unlike
    heights = np.asarray(jax.vmap(target.log_density)(target.means))
    whole = Peaks(np.asarray(target.means), choleskys, heights)
    assert len(unexplained_places(generator(jax.random.key(2)), target, whole, 64, SEARCH)[0]) == 0
    narrow = int(np.argmin(np.linalg.det(choleskys)))
    rest = Peaks(*(np.delete(each, narrow, axis=0) for each in whole))
    places, _ = unexplained_places(generator(jax.random.key(2)), target, rest, 64, SEARCH)
    # All are of the mode that was left out.
    assert len(places) > 0
    away = np.einsum("kij,nkj->nki", np.linalg.inv(choleskys), np.asarray(places)[:, None] - target.means)
    logs = -0.5 * np.sum(away**2, axis=2) - np.log(np.linalg.det(choleskys))
    assert (logs.argmax(axis=1) == narrow).all()


def test_of_very_many_peaks_some_of_every_kind_are_kept():
    """Sixteen coordinates with two wells each: those in which the last is in its lower well are none of the highest."""
    depths = np.append(np.full(15, 0.1), 3.0)
    lower = np.random.default_rng(0).random((512, 16)) < 0.5
    points, values = np.where(lower, -1.0, 1.0), -(lower @ depths)
    highest = np.argsort(-values)[: SEARCH.most_peaks]
    assert lower[highest].sum(axis=0).min() == 0
    kept = foremost(points, values, SEARCH.most_peaks, SEARCH)
    assert len(set(kept)) == SEARCH.most_peaks
    assert lower[kept].sum(axis=0).min() > 0
    assert (np.diff(values[kept]) <= 0).all()
    assert set(highest[: SEARCH.most_peaks // 2]) <= set(kept)
    assert foremost(points[:5], values[:5], SEARCH.most_peaks, SEARCH) == list(np.argsort(-values[:5]))


def test_newtons_steps_go_up_where_the_curvature_has_the_wrong_sign():
    # Two wells; at 0.3 the log density is curved upwards, and a plain step would go down to the saddle.
    target = Target.from_log_density(lambda x: -((x[0] ** 2 - 4.0) ** 2) - 1e6 * (x[1] - 0.1) ** 2, dim=2)
    points, values = to_the_top(target, np.array([[0.3, 0.0], [-0.3, 1.0]]), np.array([-1e9, -1e9]), SEARCH)
    assert np.abs(points - [[2.0, 0.1], [-2.0, 0.1]]).max() < 0.02
    assert values.min() > -0.01


def test_points_without_a_slope_stay():
    target = Target.from_log_density(lambda x: jnp.where(x[0] > 0, jnp.log(x[0]) - x[0], jnp.nan), dim=1)
    points, values = to_the_top(target, np.array([[-1.0], [3.0]]), np.array([-np.inf, -1.9]), SEARCH)
    assert points[0] == -1.0
    assert abs(points[1] - 1.0) < 0.2
    assert values[1] > -1.02


def test_walks_on_one_mode_are_one_peak_in_many_dimensions():
    # Conditioned so badly that walks coordinate by coordinate stop short of the top, each elsewhere.
    target = correlated_gaussian(jax.random.key(0), 150, 100.0)
    peaks = find_peaks(jax.random.key(1), target)
    assert len(peaks.points) == 1
    deviations = np.linalg.solve(peaks.choleskys[0], peaks.points[0] - np.asarray(target.mean))
    assert np.linalg.norm(deviations) < 0.01


def test_rounding_of_where_walks_end_is_no_width():
    """One peak away from the origin: in single precision, walks end some `1e-4` from its top."""

    def log_density(x):
        return x[0] - jnp.exp(x[0]) - 0.5 * (x[1] - 5.0) ** 2 - 0.5 * jnp.sum((x[2:] / 0.01) ** 2)

    peaks = find_peaks(jax.random.key(1), Target.from_log_density(log_density, dim=4))
    assert len(peaks.points) == 1
    np.testing.assert_allclose(np.diagonal(peaks.choleskys[0]), [1.0, 1.0, 0.01, 0.01], rtol=0.01)


@pytest.mark.parametrize("shift", [10.0, 1000.0])
def test_a_peak_away_from_the_origin_is_as_wide_as_it_is(shift):
    """All walks end there, within rounding of each other, which says nothing of the peak."""
    target = correlated_gaussian(jax.random.key(0), 4, 10.0)
    far = Target.from_log_density(lambda x: target.log_density(x - shift), dim=4)
    peaks = find_peaks(jax.random.key(1), far, FEW)
    assert len(peaks.points) == 1
    covariance = peaks.choleskys[0] @ peaks.choleskys[0].T
    np.testing.assert_allclose(covariance, target.covariance, rtol=0.01, atol=0.01)


def test_a_wide_peak_is_as_wide_as_it_is_where_a_narrow_one_is_near():
    target = Mixture([0.99, 0.01], [np.zeros(3), np.ones(3)], [100.0 * np.eye(3), 0.01 * np.eye(3)])
    peaks = find_peaks(jax.random.key(1), target, FEW)
    np.testing.assert_allclose(peaks.choleskys, [0.1 * np.eye(3), 10.0 * np.eye(3)], rtol=0.01, atol=0.01)
