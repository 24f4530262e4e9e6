"""Langevin, HMC, MALA and NUTS against moments in closed form, on a skewed target.

With independent chains every deviation is a standard normal number; of the four, none above 5 has
a false failure rate of 2e-6. Langevin has a bias of order `eps` besides, so its step is small here.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from pushforward.payback import nuts
from reproduce.rivals import hmc, langevin, mala, svgd

KEY = jax.random.key(0)
N = 2000

CHAINS = {
    "langevin": (lambda target: langevin.algorithm(target, N, step_size=0.004), 1500),
    "hmc": (lambda target: hmc.algorithm(target, N), 60),
    "mala": (lambda target: mala.algorithm(target, N, step_size=0.1), 200),
}
chains = pytest.mark.parametrize(("make", "steps"), CHAINS.values(), ids=CHAINS.keys())


@chains
def test_moments_are_right_and_a_wrong_temperature_is_seen(
    make, steps, target, tempered, run, worst_deviation
):
    for law, fine in ((target, True), (tempered, False)):
        algorithm = make(law)
        state, info = run(KEY, algorithm, steps)
        draws = algorithm.sample(KEY, state, N)
        assert draws.shape == (N, 2)
        assert (worst_deviation(draws) < 5) is fine
        assert all(np.isfinite(value).all() for value in info.values())


def test_exact_draws_pass_the_same_test(exact_draws, worst_deviation):
    assert worst_deviation(exact_draws(N)) < 5


def test_langevin_moves_by_eps_score_and_noise_of_two_eps(target):
    # All chains at one point: after a step their mean is x + eps s and their variance 2 eps.
    # 40,000 chains, 5 standard errors: false failure below 3e-6.
    n, eps, x = 40_000, 0.01, jnp.array([-3.0, 3.0])
    step = eqx.filter_jit(langevin.algorithm(target, n, step_size=eps).step)
    state, _ = step(KEY, jnp.tile(x, (n, 1)))
    error = 5 * np.sqrt(2 * eps / n)
    drift = jnp.mean(state, axis=0) - x
    np.testing.assert_allclose(drift, eps * target.score(x), atol=error)
    np.testing.assert_allclose(jnp.var(state, axis=0), 2 * eps, rtol=5 * np.sqrt(2 / n))
    # The other convention, with half the drift, is told apart by the same test.
    assert np.all(np.abs(drift - eps / 2 * target.score(x)) > error)


def test_hmc_without_accepting_would_be_seen(target, run, worst_deviation):
    # Steps so long that the leapfrog is poor: the accept step alone makes the moments right.
    algorithm = hmc.algorithm(target, N, step_size=0.4)
    state, info = run(KEY, algorithm, 60)
    assert 0.5 < float(info["acceptance"][-1]) < 0.95
    assert worst_deviation(algorithm.sample(KEY, state, N)) < 5


def test_nuts_is_a_reference(target, run):
    # 24 chains of 50 draws: the chains' means are independent, so t has 23 degrees of freedom and
    # |t| < 7 fails by chance less than 1e-6 of the time.
    num_chains, sweeps = 24, 50
    algorithm = nuts.algorithm(target, num_chains, num_warmup=150)
    state, info = run(KEY, algorithm, 5)
    draws = np.asarray(algorithm.sample(KEY, state, num_chains * sweeps))
    by_chain = draws.reshape(sweeps, num_chains, 2)

    def t_values(by_chain, mean):
        means = np.mean(by_chain, axis=0)
        return (np.mean(means, axis=0) - mean) / np.std(means, axis=0, ddof=1) * num_chains**0.5

    assert np.all(np.abs(t_values(by_chain, target.mean)) < 7)
    squares = (by_chain - target.mean) ** 2
    assert np.all(np.abs(t_values(squares, np.diag(target.covariance))) < 7)
    # The same test sees a mirror image.
    assert np.any(np.abs(t_values(-by_chain, target.mean)) > 7)
    assert float(info["divergent"].mean()) < 0.05
    assert np.all(state.step_size > 0)
    assert np.any(state.inverse_mass_matrix != 1)


POPULATIONS = {
    "langevin": langevin.algorithm,
    "hmc": hmc.algorithm,
    "mala": mala.algorithm,
    "svgd": svgd.algorithm,
}
populations = pytest.mark.parametrize("make", POPULATIONS.values(), ids=POPULATIONS.keys())


@populations
def test_data_are_arguments_and_the_key_decides(make, run):
    # A second target of the same form must not be compiled again; its arrays are leaves.
    traces = []

    class Bowl(type(targets.gaussian())):
        def log_density(self, x):
            traces.append(1)
            return super().log_density(x)

    first, second = (make(Bowl(mean, np.eye(2)), 10) for mean in ([0.0, 0.0], [3.0, -3.0]))

    def draws(algorithm, seed):
        return algorithm.sample(KEY, run(jax.random.key(seed), algorithm, 3)[0], 10)

    one = draws(first, 0)
    count = len(traces)
    assert count > 0
    np.testing.assert_array_equal(draws(first, 0), one)
    assert np.all(draws(first, 1) != one)
    assert np.all(draws(second, 0) != one)
    assert len(traces) == count
    leaves = jax.tree.leaves(eqx.filter(second, eqx.is_array))
    assert any(np.array_equal(leaf, [3.0, -3.0]) for leaf in leaves)


@populations
def test_draws_are_members_of_the_population(make, target):
    algorithm = make(target, 10)
    state = algorithm.init(KEY)
    everyone = algorithm.sample(KEY, state, 10)
    some = algorithm.sample(KEY, state, 5)
    assert len({tuple(row) for row in some.tolist()} & {tuple(r) for r in everyone.tolist()}) == 5
    with pytest.raises(ValueError, match=r"`n` must be at most .*10; got 11"):
        algorithm.sample(KEY, state, 11)


def test_starts_are_the_papers(target):
    # 5 standard errors of a standard deviation over 4,000 numbers.
    for make, scale in ((langevin, 0.1), (svgd, 0.1), (hmc, 1.0)):
        algorithm = make.algorithm(target, 2000)
        start = algorithm.sample(KEY, algorithm.init(KEY), 2000)
        np.testing.assert_allclose(jnp.std(start), scale, rtol=5 / np.sqrt(8000))


@pytest.mark.parametrize("module", [langevin, hmc, mala, svgd, nuts])
def test_senseless_sizes_are_refused(module, target):
    with pytest.raises(ValueError, match=r"must be (a positive|an) integer"):
        module.algorithm(target, 0)
    with pytest.raises(ValueError, match=r"`initial_scale` must be a finite number above 0"):
        module.algorithm(target, 4, initial_scale=-1.0)
