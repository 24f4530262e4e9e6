"""Logistic posteriors on tables of scikit-learn, against NumPy and scikit-learn's own fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from reproduce.targets import breast_cancer, breast_cancer_hierarchical, breast_cancer_quadratic, digits_3_8
from reproduce.targets.tables import NormalLogistic, standardise


@pytest.mark.parametrize(
    ("build", "dim"),
    [
        (breast_cancer, 31),
        (breast_cancer_quadratic, 61),
        (digits_3_8, 53),
        (breast_cancer_hierarchical, 32),
    ],
)
def test_sizes_and_names(build, dim):
    target = build()
    assert (target.dim, target.name) == (dim, build.__name__)
    value, score = jax.eval_shape(lambda x: (target.log_density(x), target.score(x)), jnp.zeros(dim))
    assert (value.shape, score.shape) == ((), (dim,))


def test_density_and_score_against_numpy():
    features, labels = load_breast_cancer(return_X_y=True)
    matrix = np.hstack([(features - features.mean(0)) / features.std(0), np.ones((len(features), 1))])
    signs = np.where(labels == 1, 1.0, -1.0)
    x = np.random.default_rng(0).normal(size=31)
    margins = signs * (matrix @ x)
    log_q = -np.logaddexp(0, -margins).sum() - 0.5 * x @ x
    score = matrix.T @ (signs / (1 + np.exp(margins))) - x
    target = breast_cancer()
    # Zero weights count as zero: every row has log sigmoid(0) there.
    value = float(target.log_density(jnp.asarray(x, float))) - len(matrix) * np.log(2.0)
    assert value == pytest.approx(log_q, rel=1e-5)
    np.testing.assert_allclose(target.score(jnp.asarray(x, float)), score, rtol=1e-3, atol=1e-3)


def test_the_mode_is_the_penalised_fit_of_scikit_learn():
    target = breast_cancer()
    features, labels = load_breast_cancer(return_X_y=True)
    matrix = np.hstack([standardise(features), np.ones((len(features), 1))])
    # C = 1 is a unit normal prior; the bias is a column, so that it is penalised like the rest.
    found = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(matrix, labels)
    mode = jnp.asarray(found.coef_[0], float)
    assert np.abs(target.score(mode)).max() < 1e-2
    # Planted error: without the prior that point is far from a mode.
    assert np.abs(target.score(mode) + mode).max() > 0.5


def test_a_wider_prior_adds_what_the_formula_says():
    features = standardise(np.random.default_rng(1).normal(size=(40, 3)))
    labels = (np.arange(40) % 3 == 0).astype(int)
    narrow, wide = (NormalLogistic(features, labels, prior_scale=s) for s in (1.0, 2.0))
    x = jnp.array([0.5, -1.0, 2.0, 0.25])
    gap = float(wide.log_density(x) - narrow.log_density(x))
    assert gap == pytest.approx(0.5 * float(x @ x) * (1 - 0.25), rel=1e-4)
    with pytest.raises(ValueError, match="prior_scale"):
        NormalLogistic(features, labels, prior_scale=0.0)
    with pytest.raises(ValueError, match="two classes"):
        NormalLogistic(features, np.arange(40))
