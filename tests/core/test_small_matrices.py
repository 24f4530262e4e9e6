"""Inverses and determinants of small matrices, against LAPACK's, with their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from pushforward.small_matrices import inverse_and_log_det

pytestmark = pytest.mark.quick_compilation


@pytest.mark.parametrize("dim", [1, 2, 3, 7])
def test_against_lapack(double, dim):
    matrices = np.random.default_rng(dim).normal(size=(50, dim, dim))
    inverses, log_dets = jax.vmap(inverse_and_log_det)(matrices)
    np.testing.assert_allclose(inverses, np.linalg.inv(matrices), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(log_dets, np.linalg.slogdet(matrices)[1], rtol=1e-9, atol=1e-9)


def test_a_zero_where_the_first_pivot_would_be(double):
    matrix = jnp.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]])
    inverse, log_det = inverse_and_log_det(matrix)
    np.testing.assert_allclose(inverse @ matrix, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(log_det, np.log(24.0))


@pytest.mark.parametrize("dim", [2, 4])
def test_derivatives(double, dim):
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(dim, dim)))
    check_grads(lambda m: inverse_and_log_det(jnp.asarray(m)), (matrix,), order=2)
