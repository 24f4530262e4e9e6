import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="package")
def _one_thread():
    """Stages compute small products on the host, by one thread, as the driver runs them."""
    with threadpool_limits(1, user_api="blas"):
        yield
