"""From a log density to draws with the right moments, in seconds."""

import jax
import numpy as np
import pytest

import pushforward as pf
from pushforward.targets import Gaussian


@pytest.mark.quick_compilation
def test_a_small_fit_of_an_asymmetric_gaussian():
    """KL training from the identity: mean within 0.2 and deviations within 10 % of the target's, its
    correlation within 0.1; 20,000 draws add at most 0.03 to any of these at five standard errors."""
    target = Gaussian([-1.0, 0.5], [[1.5, -0.6], [-0.6, 0.5]])
    settings = pf.Settings(
        method="kl", frame="identity", width=16, depth=2, score_width=32, score_depth=2, num_steps=400, batch_size=128,
        score_batch_size=128, score_steps=3, learning_rate=5e-3, score_learning_rate=1e-2,
    )  # fmt: skip
    done = pf.fit(jax.random.key(1), target, settings=settings, progress=False)
    draws = np.asarray(done.sampler.sample(jax.random.key(2), 20_000), np.float64)
    covariance = np.cov(draws.T)
    deviations, wanted = np.sqrt(np.diag(covariance)), np.sqrt(np.diag(target.covariance))
    np.testing.assert_allclose(draws.mean(0), target.mean, atol=0.2)
    np.testing.assert_allclose(deviations / wanted, 1, atol=0.1)
    correlation = covariance[0, 1] / deviations.prod()
    np.testing.assert_allclose(correlation, -0.6 / np.sqrt(0.75), atol=0.1)
    assert done.history[-1]["ksd_imq_v"] < 0.5 * done.history[0]["ksd_imq_v"]
    assert done.seconds > 0
