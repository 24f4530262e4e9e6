"""A posterior of three coordinates, integrated on a grid: what the recipe must reproduce, and Laplace cannot."""

import jax
import numpy as np
import pytest

from pushforward import Outcome, load
from pushforward.targets import gaussian
from reproduce.posterior import RECIPE, DataPlan, fit_posterior
from reproduce.rivals import laplace
from reproduce.targets import BayesianLogisticRegression


@pytest.fixture(scope="module")
def separated():
    """A rare indicator with all its rows in one class: its weight is held by the prior alone, on one side."""
    rng = np.random.default_rng(0)
    features = (np.arange(300) < 12).astype(np.float32)[:, None]
    labels = np.where(rng.random(300) < 0.4, 1, -1)
    labels[:12] = 1
    return BayesianLogisticRegression(features, labels, shape=4.0, rate=4.0)


@pytest.fixture(scope="module")
def truth(separated):
    """Means and standard deviations by summing over a grid."""
    rows = np.asarray(separated.rows, np.float64).reshape(-1, 2)
    w1, w2, t = np.meshgrid(
        np.linspace(-2, 16, 160), np.linspace(-1.4, 0.6, 60), np.linspace(-5, 3, 80), indexing="ij"
    )
    # Rows are of few kinds: one sum for each.
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    log_q = sum(-n * np.logaddexp(0, -(a * w1 + b * w2)) for (a, b), n in zip(kinds, counts, strict=True))
    log_q = log_q + (1 + 4.0) * t - np.exp(t) * (0.5 * (w1**2 + w2**2) + 4.0)
    mass = np.exp(log_q - log_q.max())
    mass /= mass.sum()
    grids = (w1, w2, t)
    mean = np.array([(mass * g).sum() for g in grids])
    return mean, np.sqrt([(mass * (g - m) ** 2).sum() for g, m in zip(grids, mean, strict=True)])


SMALL = {"settings": RECIPE.replace(num_steps=400, width=24), "data": DataPlan(rows=60), "progress": False}


@pytest.fixture(scope="module")
def fitted(separated):
    return fit_posterior(jax.random.key(0), separated, **SMALL)


def errors(draws, truth):
    mean, sd = truth
    return np.abs(np.asarray(draws).mean(0) - mean) / sd, np.asarray(draws).std(0) / sd


def test_the_recipe_has_the_posteriors_moments_where_laplace_has_not(separated, fitted, truth):
    mean, ratio = errors(fitted.sampler.sample(jax.random.key(1), 20_000), truth)
    assert np.all(mean < 0.1), mean
    assert np.all(np.abs(ratio - 1) < 0.1), ratio
    law = laplace.gaussian(separated.peak())
    mean, ratio = errors(law.sample(jax.random.key(1), 20_000), truth)
    assert mean.max() > 0.2
    assert np.abs(ratio - 1).max() > 0.15


def test_it_says_what_it_did_and_how_near_it_came(fitted):
    assert [phase["phase"] for phase in fitted.phases] == ["centre", "train", "weigh"]
    assert fitted.sampler.about["data"] == {"rows": 60, "estimate": "expanded"}
    assert 0.9 < fitted.sampler.about["metrics"]["efficiency"] <= 1.0
    assert fitted.outcome.good


def test_stopped_half_way_it_goes_on_to_the_same_sampler(separated, fitted, tmp_path):
    looks = []

    def stop_at_the_third(sampler):
        looks.append(sampler)
        if len(looks) == 3:
            raise KeyboardInterrupt
        return {}

    key = jax.random.key(0)
    halted = fit_posterior(key, separated, **SMALL, checkpoint=tmp_path, monitor=stop_at_the_third)
    assert halted.outcome is Outcome.INTERRUPTED
    assert [row["step"] for row in halted.history] == [20, 40]
    assert "efficiency" not in halted.sampler.about["metrics"]
    resumed = fit_posterior(key, separated, **SMALL, checkpoint=tmp_path)
    assert resumed.outcome is Outcome.FINISHED
    draws = (fit.sampler.sample(jax.random.key(1), 100) for fit in (fitted, resumed))
    np.testing.assert_array_equal(*draws)
    with pytest.raises(ValueError, match=r"another fit.*data\.rows"):
        fit_posterior(key, separated, **SMALL | {"data": DataPlan(rows=61)}, checkpoint=tmp_path)


def test_no_time_is_a_named_outcome(separated):
    hurried = fit_posterior(jax.random.key(0), separated, **SMALL, budget=1e-6)
    assert hurried.outcome is Outcome.UNSTARTED
    # What there is without a step: the Laplace approximation at the centre.
    draws = np.asarray(hurried.sampler.sample(jax.random.key(1), 4000))
    np.testing.assert_allclose(draws.mean(0), separated.centre().mode, atol=0.2)


def test_draws_have_the_models_names(separated, fitted, tmp_path):
    fitted.sampler.save(tmp_path / "posterior.pf")
    draws = load(tmp_path / "posterior.pf").draws(jax.random.key(1), 50)
    x = np.asarray(fitted.sampler.sample(jax.random.key(1), 50))
    np.testing.assert_allclose(draws["weights"], x[:, :1], rtol=1e-6)
    np.testing.assert_allclose(draws["bias"], x[:, 1], rtol=1e-6)
    np.testing.assert_allclose(draws["alpha"], np.exp(x[:, 2]), rtol=1e-5)
    rows = np.asarray(separated.rows)[0, :, :1]
    assert BayesianLogisticRegression(rows, np.arange(300) % 2, bias=False).parameters.names == (
        *("weights", "alpha"),
    )


def test_other_targets_and_senseless_options_are_refused(separated, tmp_path):
    with pytest.raises(TypeError, match="BayesianLogisticRegression"):
        fit_posterior(jax.random.key(0), gaussian())
    for bad in ({"budget": -1.0}, {"checkpoint_every": -1.0, "checkpoint": tmp_path}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fit_posterior(jax.random.key(0), separated, **SMALL, **bad)
    with pytest.raises(ValueError, match="estimate"):
        DataPlan(estimate="none")
