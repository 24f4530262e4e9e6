import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from pushforward.metrics import floor, ksd_imq_v
from pushforward.metrics.ksd import ROWS
from reproduce.metrics.distances import PROTOCOLS, ksd_imq_u, ksd_rbf_u
from reproduce.targets import donut, published_funnel

# facts 2.2, one KSD of 500 exact draws: mean and standard deviation.
CALIBRATION = {
    "gaussian": (targets.gaussian, 0.108, 0.025),
    "mog2": (targets.mog2, 0.109, 0.020),
    "rosenbrock": (targets.rosenbrock, 0.138, 0.028),
    "donut": (donut, 0.108, 0.017),
    "funnel": (targets.funnel, 0.089, 0.019),
    "published funnel": (published_funnel, 0.127, 0.015),
    "squiggle": (targets.squiggle, 0.130, 0.030),
}


def slow_sums(draws, target, h=None):
    """The Stein kernel summed by a double loop in double precision: off the diagonal, and on it."""
    x = np.asarray(draws, np.float64)
    s = np.asarray(jax.vmap(target.score)(draws), np.float64)
    n, dim = x.shape
    off = on = 0.0
    for i in range(n):
        for j in range(n):
            d = x[i] - x[j]
            u = d @ d
            if h is None:
                base = 1 + u
                value = s[i] @ s[j] * base**-0.5 + (s[i] - s[j]) @ d * base**-1.5
                value += dim * base**-1.5 - 3 * u * base**-2.5
            else:
                k = np.exp(-u / h**2)
                value = k * (s[i] @ s[j] + 2 * (s[i] - s[j]) @ d / h**2)
                value += k * (2 * dim / h**2 - 4 * u / h**4)
            on, off = (on + value, off) if i == j else (on, off + value)
    return off, on


def test_values_are_those_of_a_double_loop():
    target, n = targets.rosenbrock(), ROWS + 5
    # One tile and a bit. Draws that are a little off, so that no term is small by chance.
    draws = 1.1 * target.sample(jax.random.key(n), n)
    off, on = slow_sums(draws, target)
    np.testing.assert_allclose(ksd_imq_v(draws, target), np.sqrt((off + on) / n**2), rtol=1e-4)
    np.testing.assert_allclose(ksd_imq_u(draws, target), off / (n * (n - 1)), rtol=1e-3, atol=1e-5)
    off, _ = slow_sums(draws, target, h=0.25)
    np.testing.assert_allclose(ksd_rbf_u(draws, target), off / (n * (n - 1)), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(("metric", "shift"), [("ksd_imq_u", 0.3), ("ksd_rbf_u", 1.0)])
def test_u_statistic_has_mean_zero_for_exact_draws_and_only_for_them(metric, shift):
    # 60 repeats, |t| < 5: false failure below 1e-5 for each metric. The narrow kernel of the
    # paper's appendix is so weak that it needs a shift three times as large.
    target = targets.squiggle()
    null = floor(jax.random.key(0), PROTOCOLS[metric], target, 200, repeats=60)
    assert abs(null.mean) < 5 * null.sd / np.sqrt(null.repeats)
    shifted = target.sample(jax.random.key(1), 2000) + jnp.array([0.0, shift])
    # The spread falls as 1/n, from 200 draws to 2,000.
    assert PROTOCOLS[metric](jax.random.key(0), shifted, target) > 10 * null.sd / 10


@pytest.mark.parametrize(("make", "mean", "sd"), CALIBRATION.values(), ids=CALIBRATION.keys())
def test_published_calibration(make, mean, sd):
    # 40 repeats against figures of the same sort, given to three digits: 5 standard errors of the
    # difference of two such means and half a digit; false failure below 1e-5 for each target.
    found = floor(jax.random.key(2), "ksd_imq_v", make(), 500, repeats=40)
    assert abs(found.mean - mean) < 5 * sd * np.sqrt(2 / 40) + 0.0005
    assert 0.4 < found.sd / sd < 2.2


def test_selection_lowers_the_floor():
    # facts 2.2: 0.138 becomes 0.125 on Rosenbrock by taking the best of fifty.
    chosen = floor(jax.random.key(3), "ksd_imq_v", targets.rosenbrock(), 500, checkpoints=50)
    assert chosen.repeats == 20
    assert abs(chosen.mean - 0.125) < 0.01
    assert chosen.mean < 0.135


def test_memory_stays_bounded():
    # 20,000 draws make 4e8 pairs, 1.6 GB as one table; the compiled program holds far less.
    target = targets.gaussian()
    from pushforward.kernels import IMQ
    from pushforward.metrics.ksd import mean_stein

    draws = jnp.zeros((20_000, 2))
    compiled = mean_stein.lower(draws, target, IMQ(), off_diagonal=False).compile()
    assert compiled.compiled.memory_analysis().temp_size_in_bytes < 64e6


def test_draws_that_cannot_be_judged_are_refused():
    target = targets.gaussian()
    draws = target.sample(jax.random.key(6), 10)
    with pytest.raises(ValueError, match=r"`draws` must be finite; 2 of its 10 rows are not"):
        ksd_imq_v(draws.at[3, 0].set(jnp.nan).at[3, 1].set(jnp.inf).at[7, 1].set(jnp.inf), target)
    with pytest.raises(ValueError, match=r"at least 2 draws for this metric; got 1"):
        ksd_imq_u(draws[:1], target)
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\); got \(10, 3\)"):
        ksd_imq_v(jnp.ones((10, 3)), target)
