"""The posterior against its formula in double precision, and minibatches against the whole."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from covertype_prior import PRIOR

from reproduce.data import split, stand_in
from reproduce.targets import BayesianLogisticRegression, expand
from reproduce.targets.logistic_expansion import alias_table


def formula(data, x, bias=True, shape=1.0, rate=0.01):
    """The log posterior of (w, log alpha) as the issue has it, term by term."""
    features, labels = data
    rows = np.hstack([features, np.ones((len(features), 1))]) if bias else features
    w, t = np.asarray(x[:-1], np.float64), float(x[-1])
    alpha = np.exp(t)
    likelihood = -np.logaddexp(0, -labels * (rows @ w)).sum()
    prior_w = 0.5 * len(w) * np.log(alpha) - 0.5 * alpha * w @ w
    prior_alpha = (shape - 1) * t - rate * alpha
    return likelihood + prior_w + prior_alpha + t


def formula_score(data, x, **options):
    x, steps = np.asarray(x, np.float64), 1e-5 * np.eye(len(x))
    return np.array(
        [(formula(data, x + h, **options) - formula(data, x - h, **options)) / 2e-5 for h in steps]
    )


# Compiled as a whole: operation by operation, each would be compiled for itself.
score_of = eqx.filter_jit(lambda target, x: target.score(x))
value_of = eqx.filter_jit(lambda target, x: target.log_density(x))
all_of = eqx.filter_jit(lambda target, x: jax.vmap(jax.value_and_grad(target.log_density))(x))

POINTS = np.random.default_rng(0).normal(size=(6, 5)) * 1.5


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"shape": 2.5, "rate": 0.3}])
def test_log_density_and_score_are_the_formula(small_data, options):
    target = BayesianLogisticRegression(*small_data, **options)
    points = POINTS[:, : target.dim]
    values, scores = map(np.asarray, all_of(target, points.astype(np.float32)))
    truth = np.array([formula(small_data, x, **options) for x in points])
    np.testing.assert_allclose(values - values[0], truth - truth[0], atol=2e-4)
    np.testing.assert_allclose(scores, [formula_score(small_data, x, **options) for x in points], atol=2e-3)


def test_covertype_has_56_coordinates_or_the_papers_55():
    data = stand_in(500)
    assert BayesianLogisticRegression(*data).dim == 56
    assert BayesianLogisticRegression(*data, bias=False).dim == 55


def test_labels_of_any_two_kinds_mean_the_same(small_data, small):
    features, labels = small_data
    x = jnp.asarray(POINTS[0], jnp.float32)
    for other in (labels > 0, (labels + 3) // 2, np.where(labels > 0, "b", "a")):
        assert value_of(BayesianLogisticRegression(features, other, **PRIOR), x) == value_of(small, x)


def test_chunks_change_nothing_and_bound_the_memory():
    data = stand_in(6000)
    scaled = split(*data, 0)
    whole = BayesianLogisticRegression(scaled.features, scaled.labels, memory_mb=100.0)
    chunked = BayesianLogisticRegression(scaled.features, scaled.labels, memory_mb=1.0)
    assert whole.rows.shape[0] == 1
    assert chunked.rows.shape[0] > 5
    x = jnp.asarray(np.random.default_rng(0).normal(size=(128, 56)), jnp.float32)
    score = eqx.filter_jit(lambda target, x: jax.vmap(target.score)(x))
    lowered = [score.lower(target, x).compile() for target in (whole, chunked)]
    used = [program.compiled.memory_analysis().temp_size_in_bytes for program in lowered]
    # The margins of all rows at 128 points are 2.5 MB; a chunk's are a tenth of it.
    assert used[1] < 2e6 < used[0]
    np.testing.assert_allclose(*(program(t, x) for program, t in zip(lowered, (whole, chunked), strict=True)),
                               rtol=2e-4, atol=2e-2)  # fmt: skip


def test_data_are_arguments_of_the_program_not_constants(small):
    traced = eqx.filter_make_jaxpr(lambda target, x: target.score(x))(small, jnp.zeros(5))[0]
    assert sum(np.size(constant) for constant in traced.consts) < 10


def test_the_peak_is_where_the_formula_is_flat_and_its_precision_is_the_hessian(small_data, small):
    peak = small.peak()
    np.testing.assert_allclose(formula_score(small_data, peak.mode, **PRIOR), 0, atol=1e-5)
    hessian = jax.jit(jax.hessian(small.log_density))(jnp.asarray(peak.mode, jnp.float32))
    np.testing.assert_allclose(-hessian, peak.precision, rtol=1e-3, atol=1e-3)
    assert np.all(np.linalg.eigvalsh(peak.precision) > 0)


def test_third_derivatives_exist_for_fisher_training(small):
    x = jnp.asarray(POINTS[1], jnp.float32)
    trace = jax.jit(lambda x: jnp.trace(jax.jacfwd(small.score)(x)))
    step = 1e-2
    slope = [(trace(x + step * e) - trace(x - step * e)) / (2 * step) for e in np.eye(5, dtype=np.float32)]
    np.testing.assert_allclose(jax.jit(jax.grad(trace))(x), slope, rtol=2e-2, atol=2e-2)


def test_centring_keeps_what_only_the_prior_holds():
    """Along a direction that the data leave flat, single precision sees the prior's pull and nothing else."""
    scaled = split(*stand_in(20_000), 0)
    target = BayesianLogisticRegression(scaled.features, scaled.labels)
    peak = target.peak()
    centred = target.centred(peak)
    # One code of four sums to one like the bias: moving both against each other changes no margin.
    flat = np.zeros(56)
    flat[10:14], flat[54] = 1.0, -1.0
    flat /= np.linalg.norm(flat)
    rng = np.random.default_rng(0)
    x = peak.mode + np.linalg.cholesky(peak.covariance) @ rng.normal(size=56)
    x32 = np.asarray(x, np.float32).astype(np.float64)
    pull = -np.exp(x32[-1]) * (flat[:-1] @ x32[:-1])
    assert abs(flat @ np.asarray(score_of(centred, x32.astype(np.float32)), np.float64) - pull) < 1e-3
    places = np.stack([x32, peak.mode]).astype(np.float32)
    gained = [float(np.subtract(*np.asarray(all_of(t, places)[0], np.float64))) for t in (centred, target)]
    assert abs(gained[0] - gained[1]) < 0.1


def mean_and_error(samples):
    return samples.mean(0), samples.std(0, ddof=1) / np.sqrt(len(samples))


@pytest.mark.parametrize("kind", ["plain", "expanded"])
def test_minibatch_scores_are_unbiased(small, kind):
    """5 coordinates at 5 standard errors: a false failure in 350,000 keys, and the key is fixed."""
    target = small if kind == "plain" else expand(small, small.peak())
    x = jnp.asarray(small.peak().mode + 0.4, jnp.float32)
    keys = jax.random.split(jax.random.key(0), 4000)
    scores = np.asarray(eqx.filter_jit(jax.vmap(lambda key: target.minibatch(key, 4).score(x)))(keys))
    mean, error = mean_and_error(scores)
    truth = np.asarray(score_of(small, x))
    # The prior's own coordinate has no noise, only rounding.
    error = np.maximum(error, 1e-5 * (1 + np.abs(truth)))
    assert np.all(np.abs(mean - truth) < 5 * error)
    # The test can fail: weights of a batch half too large are seen.
    prior = truth - np.asarray(_likelihood_score(small, x))
    if kind == "plain":
        assert np.any(np.abs(1.5 * (mean - prior) + prior - truth) > 5 * error)


def _likelihood_score(target, x):
    w = np.asarray(x[:-1], np.float64)
    rows = np.asarray(target.rows, np.float64).reshape(-1, target.dim - 1)
    return np.append(rows.T @ (1 / (1 + np.exp(rows @ w))), 0.0)


def test_the_expansion_is_an_identity_and_its_minibatches_have_little_noise():
    scaled = split(*stand_in(4000), 0)
    target = BayesianLogisticRegression(scaled.features, scaled.labels)
    peak = target.peak()
    expanded, centred = expand(target, peak), target.centred(peak)
    factor = np.linalg.cholesky(peak.covariance)
    u = np.random.default_rng(0).normal(size=(8, 56))
    x = jax.device_put((peak.mode + u @ factor.T).astype(np.float32))
    (value, slope), (again, slope_again) = all_of(centred, x), all_of(expanded, x)
    np.testing.assert_allclose(value - value[0], again - again[0], atol=5e-3)
    np.testing.assert_allclose(np.asarray(slope) @ factor, np.asarray(slope_again) @ factor, atol=5e-3)
    draw = eqx.filter_jit(lambda target, key, x: jax.vmap(target.minibatch(key, 200).score)(x))

    def noise(of):
        keys = jax.random.split(jax.random.key(1), 20)
        errors = [(np.asarray(draw(of, key, x)) - np.asarray(slope)) @ factor for key in keys]
        return np.sqrt(np.mean(np.square(errors)))

    plain, controlled = noise(target), noise(expanded)
    # sqrt(n / size) for the plain one, as theory has it; a tenth of a standard deviation for the other.
    assert 0.6 < plain / np.sqrt(3200 / 200) < 1.6
    assert controlled < 0.25


def test_the_alias_table_draws_each_row_by_its_probability():
    probability = np.random.default_rng(0).gamma(0.1, size=1000)
    probability /= probability.sum()
    threshold, alias = alias_table(probability)
    implied = threshold / 1000
    np.add.at(implied, alias, (1 - threshold) / 1000)
    np.testing.assert_allclose(implied, probability, atol=1e-12)


BAD = {
    "three classes": (lambda f, y: (f, np.arange(40) % 3), ValueError, "two classes; got 3"),
    "one class": (lambda f, y: (f, np.ones(40)), ValueError, "two classes; got 1"),
    "NaN labels": (lambda f, y: (f, np.where(y > 0, 1.0, np.nan)), ValueError, "`labels` must not be NaN"),
    "labels too short": (lambda f, y: (f, y[:39]), ValueError, "one label a row"),
    "NaN features": (lambda f, y: (np.where(f > 2, np.nan, f), y), ValueError, "rows are not, in column"),
    "infinite features": (lambda f, y: (np.where(f > 2, np.inf, f), y), ValueError, "must be finite"),
    "a constant column": (
        lambda f, y: (np.hstack([f, np.full((40, 1), 2.0)]), y),
        ValueError,
        r"column\(s\) \[3\]",
    ),
    "one column": (lambda f, y: (f[:, 0], y), ValueError, r"shape \(rows, features\)"),
    "words": (lambda f, y: (np.full((40, 3), "a"), y), TypeError, "must hold numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_refused_with_a_reason(small_data, case):
    change, error, words = BAD[case]
    with pytest.raises(error, match=words):
        BayesianLogisticRegression(*change(*small_data))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"memory_mb": 0.01}, "memory_mb.*at least"), ({"shape": 0.0}, "shape"), ({"rate": -1.0}, "rate")],
)
def test_senseless_options_are_refused(small_data, options, words):
    with pytest.raises(ValueError, match=words):
        BayesianLogisticRegression(*small_data, **options)


def test_a_column_of_ones_may_stand_in_for_the_bias(small_data, small):
    features, labels = small_data
    own = BayesianLogisticRegression(np.hstack([features, np.ones((40, 1))]), labels, bias=False, **PRIOR)
    x = jnp.asarray(POINTS[2], jnp.float32)
    np.testing.assert_allclose(score_of(own, x), score_of(small, x), rtol=1e-5)


def test_a_minibatch_needs_a_size(small):
    with pytest.raises(ValueError, match="size"):
        small.minibatch(jax.random.key(0), 0)


def test_the_centre_is_where_the_mass_is_when_the_mode_is_not():
    """600 rows, 55 weights: the joint mode has weights of zero, the centre those that made the data."""
    scaled = split(*stand_in(600), 0)
    target = BayesianLogisticRegression(scaled.features, scaled.labels)
    assert np.abs(target.peak().origin).max() < 0.1
    centre = target.centre()
    assert np.abs(centre.origin).max() > 1.0
    assert np.all(np.linalg.eigvalsh(centre.precision) > 0)
    # The fixed point it claims to be, in its own figures.
    covariance = np.linalg.inv(centre.curvature + np.exp(centre.mode[-1]) * np.eye(55))
    best = (27.5 + 1.0) / (0.5 * (centre.origin @ centre.origin + np.trace(covariance)) + 0.01)
    assert np.exp(centre.mode[-1]) == pytest.approx(best, rel=1e-3)
    np.testing.assert_allclose(centre.slope, np.exp(centre.mode[-1]) * centre.origin, atol=1e-3)
