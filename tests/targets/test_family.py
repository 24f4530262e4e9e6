"""The random targets: normalised, sampled exactly, spread as promised, and the same for ever."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from reproduce.targets import random_target

NUMBERS = range(20)
# One that is bent, one of all; two coordinates can be integrated.
FROZEN = (0.019316978752613068, 0.0718972310423851)
PLANE = (6, 3)


def back(target, x):
    """The point of the mixture that `x` came from, by NumPy in double precision."""
    centre, scale, tails, bends = (
        np.asarray(a, np.float64) for a in (target.centre, target.scale, target.tails, target.bends)
    )
    w = (np.asarray(x, np.float64) - centre) / scale
    v = np.where(tails > 0, np.arcsinh(tails * w) / np.where(tails > 0, tails, 1.0), w)
    for j, bend in enumerate(bends):
        v[:, 2 * j + 1] -= bend * (v[:, 2 * j] ** 2 - 1.0)
    return v


def p_values(target, x):
    """Kolmogorov-Smirnov p-values of every coordinate of the mixture against its closed form."""
    v = back(target, x)
    weights, means = np.asarray(target.base.weights), np.asarray(target.base.means)
    factors = np.asarray(target.base.scales)
    found = []
    for i in range(target.dim):
        sds = np.linalg.norm(factors[:, i], axis=1)
        cdf = scipy.stats.norm.cdf((v[:, i, None] - means[:, i]) / sds) @ weights
        found.append(scipy.stats.kstest(cdf, "uniform", method="asymp").pvalue)
    return np.array(found)


@pytest.mark.parametrize("number", [1, 3])
def test_draws_follow_the_mixture_they_were_made_from(number):
    # Ten p-values below 1e-6: one new key in 100,000 fails.
    target = random_target(number)
    x = np.asarray(target.sample(jax.random.key(5), 20_000))
    assert p_values(target, x).min() > 1e-6
    wide = np.asarray(target.centre) + 1.1 * (x - np.asarray(target.centre))
    assert p_values(target, wide).min() < 1e-6


@pytest.mark.parametrize("number", PLANE)
def test_densities_integrate_to_one(number):
    target = random_target(number)
    # A grid in the units of the target; its tails are inside.
    side = np.linspace(-30, 30, 401)
    unit = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    with jax.enable_x64(True):
        exact = random_target(number)
        x = np.asarray(exact.centre) + np.asarray(exact.scale) * unit
        values = np.asarray(jax.jit(jax.vmap(exact.log_density))(jnp.asarray(x)))
    cell = float(np.prod(np.asarray(target.scale, np.float64))) * (side[1] - side[0]) ** 2
    assert np.exp(values).sum() * cell == pytest.approx(1.0, abs=2e-3)


def test_score_against_finite_differences():
    # Modes, bends and tails together.
    number = 3
    with jax.enable_x64(True):
        target = random_target(number)
        x = target.sample(jax.random.key(1), 4)

        @jax.jit
        @jax.vmap
        def both(point):
            moves = 1e-5 * jnp.diag(target.scale)
            ahead, behind = (jax.vmap(target.log_density)(point + sign * moves) for sign in (1, -1))
            # In units of each coordinate's own scale, over which they differ by a million.
            return target.score(point) * target.scale, (ahead - behind) / 2e-5

        scores, slopes = map(np.asarray, both(x))
    np.testing.assert_allclose(slopes, scores, rtol=1e-5, atol=1e-5 * np.abs(scores).max())


def test_moments_where_they_are_known():
    target = random_target(1)
    x = np.asarray(target.sample(jax.random.key(2), 20_000), np.float64)
    assert target.mean is not None
    assert target.covariance is not None
    sd = np.sqrt(np.diag(target.covariance))
    # Six and more coordinates at 5 standard errors: one new key in 100,000 fails.
    assert np.abs((x.mean(0) - np.asarray(target.mean)) / sd).max() < 5 / np.sqrt(len(x))
    np.testing.assert_allclose(x.std(0) / sd, 1.0, atol=0.05)
    assert random_target(2).mean is None


def test_the_family_is_as_wide_as_promised():
    members = [random_target(number) for number in NUMBERS]
    scales = np.concatenate([np.asarray(t.scale) for t in members])
    shifts = np.concatenate([np.abs(np.asarray(t.centre)) for t in members])
    assert np.log10(scales.max() / scales.min()) > 5.5
    assert 8e3 < shifts.max() <= 1e4
    # Single precision must still tell a thousandth of a scale.
    assert np.all(shifts <= 1e4 * np.minimum(scales, 1.0) * 1.001)
    assert {t.dim for t in members} == {2, 3, 5, 8}
    assert {t.base.weights.size for t in members} >= {1, 2, 3}
    assert all(float(jnp.min(t.base.weights)) >= 1 / 12.001 for t in members)


def test_a_number_names_one_target_for_ever():
    first, second = random_target(7), random_target(7)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    # Written down once, so that records of one release mean the same in the next.
    np.testing.assert_allclose(np.asarray(random_target(0).scale)[:2], FROZEN, rtol=1e-5)
    with pytest.raises(ValueError, match="number"):
        random_target(-1)
