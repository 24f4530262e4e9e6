import jax
import jaxtyping
import pytest
from trust_targets import QUICK, mixture

from pushforward.trust import Census
from reproduce.targets import student_t


@pytest.fixture(scope="session")
def settings():
    return QUICK


@pytest.fixture
def unhooked():
    """No annotations enforced, as in a user's session: our own messages are what is under test."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def three_modes():
    return mixture()


@pytest.fixture(scope="session")
def one_mode():
    """One Gaussian with a correlation, in the guise of three, so that nothing is compiled for it."""
    return mixture(means=[(1, -2)] * 3, covariance=((4.0, 0.6), (0.6, 1.0)))


@pytest.fixture(scope="session")
def heavy():
    return student_t(5.0, dim=2)


@pytest.fixture(scope="session")
def census_of(three_modes, one_mode, heavy, settings):
    """One census a target serves all tests."""
    held = {}

    def of(target):
        if id(target) not in held:
            held[id(target)] = Census.take(jax.random.key(0), target, settings)
        return held[id(target)]

    return of
