import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import digamma, polygamma

from pushforward.base import Target


class LogGamma(Target):
    """Logs of gamma variables, `log q = sum_i (a_i x_i - e^x_i)`: skewed, with known moments.

    A symmetric target cannot see a wrong sign, nor a wrong temperature in its mean; this one can.
    """

    shape: jax.Array
    temperature: jax.Array
    mean: jax.Array
    covariance: jax.Array
    dim: int = eqx.field(static=True, default=2)
    name: str = eqx.field(static=True, default="log_gamma")

    def log_density(self, x):
        return jnp.sum(self.shape * x - jnp.exp(x)) / self.temperature


SHAPE = np.array([1.5, 5.0])


def log_gamma(temperature):
    moments = jnp.asarray(digamma(SHAPE), float), jnp.diag(jnp.asarray(polygamma(1, SHAPE), float))
    return LogGamma(jnp.asarray(SHAPE, float), jnp.asarray(temperature), *moments)


@pytest.fixture(scope="session")
def target():
    return log_gamma(1.0)


@pytest.fixture(scope="session")
def tempered():
    """The density to the power one half: what a drift of half the right size leads to."""
    return log_gamma(2.0)


@pytest.fixture(scope="session")
def exact_draws():
    """Draws of the target by NumPy, which the tests of the draws must let pass."""
    return lambda n: np.log(np.random.default_rng(0).gamma(SHAPE, size=(n, 2)))


@eqx.filter_jit
def _init(key, algorithm):
    return algorithm.init(key)


@eqx.filter_jit
def _steps(key, algorithm, state, num_steps):
    def step(state, key):
        return algorithm.step(key, state)

    return jax.lax.scan(step, state, jax.random.split(key, num_steps))


@pytest.fixture(scope="session")
def start():
    return _init


@pytest.fixture(scope="session")
def run():
    """Run an algorithm as the library's loop does: compiled, a scan, the algorithm an argument."""

    def run(key, algorithm, num_steps):
        key_init, key_steps = jax.random.split(key)
        return _steps(key_steps, algorithm, _init(key_init, algorithm), num_steps)

    return run


@pytest.fixture(scope="session")
def worst_deviation(target):
    """How far first and second moments of independent draws are off, in standard errors."""
    kurtosis = 3 + polygamma(3, SHAPE) / polygamma(1, SHAPE) ** 2

    def worst(draws):
        n, sd = len(draws), np.sqrt(np.diag(target.covariance))
        centred = (np.asarray(draws, np.float64) - np.asarray(target.mean)) / sd
        means = np.mean(centred, axis=0) * np.sqrt(n)
        squares = (np.mean(centred**2, axis=0) - 1) / np.sqrt((kurtosis - 1) / n)
        return float(np.max(np.abs([means, squares])))

    return worst
