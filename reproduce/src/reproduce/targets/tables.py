"""Posteriors of logistic regressions on small public tables that ship with scikit-learn."""

from math import sqrt

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from pushforward.checks import check_positive
from reproduce.targets.grid import Known
from reproduce.targets.logistic import BayesianLogisticRegression, log_likelihood
from reproduce.targets.logistic_data import laid_out

FAINTEST = 0.1  # grey levels of spread (of 16) below which a pixel of the digits is left out


class NormalLogistic(Known):
    """Logistic regression with a fixed prior: `y_i ~ sigmoid(y_i f_i . w)`, `w ~ N(0, prior_scale^2 I)`.

        log q(w) = sum_i log sigmoid(y_i f_i . w) - |w|^2 / (2 prior_scale^2)

    The prior is part of the definition: a benchmark of this family circulates with its prior commented out,
    and figures with and without it do not compare. The bias, if any, is the last coordinate and has the
    same prior.
    """

    rows: Float[Array, "chunks size weights"]
    margins: Float[Array, "chunks size"]
    origin: Float[Array, " weights"]
    prior_scale: Float[Array, ""]

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        bias: bool = True,
        prior_scale: float = 1.0,
        name: str = "normal_logistic",
    ):
        """Take the data as `BayesianLogisticRegression` does."""
        self.rows, self.margins, self.origin = laid_out(features, labels, bias=bias)
        self.dim, self.name = self.origin.size, name
        self.prior_scale = jnp.asarray(check_positive(prior_scale, "prior_scale"), float)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log posterior; that of `w = 0` counts as zero."""
        likelihood = log_likelihood(x, self.origin, None, self.rows, self.margins)
        return likelihood - 0.5 * jnp.sum((x / self.prior_scale) ** 2)


def breast_cancer() -> NormalLogistic:
    """Return 569 tumours, benign or not, by 30 standardised features and a bias, N(0, 1) prior: 31-D."""
    features, labels = _load("load_breast_cancer")
    return NormalLogistic(standardise(features), labels, name="breast_cancer")


def breast_cancer_quadratic() -> NormalLogistic:
    """Return the same with the square of every feature beside it: 61-D, strongly correlated."""
    features, labels = _load("load_breast_cancer")
    once = standardise(features)
    both = np.hstack([once, standardise(once**2)])
    return NormalLogistic(both, labels, name="breast_cancer_quadratic")


def breast_cancer_hierarchical() -> BayesianLogisticRegression:
    """Return the same 30 features with the weights' precision unknown, Gamma(1, 0.01): 32-D."""
    features, labels = _load("load_breast_cancer")
    return BayesianLogisticRegression(standardise(features), labels, name="breast_cancer_hierarchical")


def digits_3_8() -> NormalLogistic:
    """Return 357 images of a 3 or an 8, by the 52 pixels that vary and a bias, prior N(0, 1): 53-D."""
    features, labels = _load("load_digits")
    pair = (labels == 3) | (labels == 8)
    features, labels = features[pair], labels[pair]
    return NormalLogistic(
        standardise(features[:, features.std(axis=0) > FAINTEST]), labels, name="digits_3_8"
    )


def standardise(features: Float[np.ndarray, "rows features"]) -> Float[np.ndarray, "rows features"]:
    """Return every column with mean 0 and standard deviation 1."""
    centred = features - features.mean(axis=0)
    return centred * sqrt(len(features)) / np.linalg.norm(centred, axis=0)


def _load(name: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError(
            "This target's table ships with `scikit-learn`, which is not installed. "
            "Install it with `pip install scikit-learn`."
        ) from error
    features, labels = getattr(datasets, name)(return_X_y=True)
    return np.asarray(features, np.float64), np.asarray(labels)
