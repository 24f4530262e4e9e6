"""The posterior in blocks against the posterior by its rows: the same law, however the rows are laid out."""

import equinox as eqx
import jax
import numpy as np
import pytest

from reproduce.data import split, stand_in
from reproduce.studies.covertype.blocks import BLOCK, in_blocks
from reproduce.targets import BayesianLogisticRegression

all_of = eqx.filter_jit(lambda target, x: jax.vmap(jax.value_and_grad(target.log_density))(x))


@pytest.fixture(scope="module")
def pair():
    scaled = split(*stand_in(4000), 0)
    target = BayesianLogisticRegression(scaled.features, scaled.labels)
    peak = target.centre()
    return target, peak, in_blocks(target, peak)


def in_double(target, x):
    """The log posterior of many points, by its formula."""
    rows = np.asarray(target.rows, np.float64).reshape(-1, target.dim - 1)[: target.num_rows]
    x = np.asarray(x, np.float64)
    w, t = x[:, :-1], x[:, -1]
    likelihood = -np.logaddexp(0, -w @ rows.T).sum(1)
    prior = (0.5 * w.shape[1] + 1.0) * t - np.exp(t) * (0.5 * (w**2).sum(1) + 0.01)
    return likelihood + prior


def test_blocks_have_the_same_value_and_score(pair):
    target, peak, blocked = pair
    factor = np.linalg.cholesky(peak.covariance)
    u = np.random.default_rng(0).normal(size=(8, 56))
    x = jax.device_put((peak.mode + u @ factor.T).astype(np.float32))
    (value, score), (_, by_rows) = all_of(blocked, x), all_of(target.centred(peak), x)
    truth = in_double(target, x)
    np.testing.assert_allclose(value - value[0], truth - truth[0], atol=1e-3)
    np.testing.assert_allclose(np.asarray(score) @ factor, np.asarray(by_rows) @ factor, atol=2e-3)


def test_far_from_the_peak_it_is_right_and_finite(pair):
    """A wild proposal, each margin thrown by hundreds: the tail is a line, not an overflow."""
    target, peak, blocked = pair
    x = peak.mode + 300.0 * np.random.default_rng(1).normal(size=(8, 56))
    x[:, -1] = peak.mode[-1]
    x = jax.device_put(x.astype(np.float32))
    value, score = map(np.asarray, all_of(blocked, x))
    truth = in_double(target, x)
    np.testing.assert_allclose(value - value[0], truth - truth[0], rtol=1e-4, atol=1e-4 * np.ptp(truth))
    np.testing.assert_allclose(score, all_of(target.centred(peak), x)[1], rtol=1e-3, atol=1e-2)


def test_rows_of_one_code_are_kept_once_a_block(pair):
    target, _, blocked = pair
    assert blocked.own.shape[1] == 10
    assert blocked.shared.shape[2] == 45
    assert int((np.asarray(blocked.missing) > 0).sum()) == target.num_rows
    # 44 kinds of each label at most, each filled up to whole blocks.
    assert blocked.missing.size <= target.num_rows + 2 * 160 * BLOCK


@pytest.mark.parametrize("kind", ["no codes", "codes alone"])
def test_tables_of_one_kind_of_column(small_data, kind):
    features, labels = small_data
    features = features if kind == "no codes" else (features > 0).astype(np.float32)
    target = BayesianLogisticRegression(features, labels, bias=kind != "no codes", shape=2.0, rate=1.0)
    peak = target.centre()
    x = jax.device_put((peak.mode + np.linspace(-1, 1, 3)[:, None]).astype(np.float32))
    (value, score), (other, by_rows) = all_of(in_blocks(target, peak), x), all_of(target.centred(peak), x)
    np.testing.assert_allclose(value - value[0], other - other[0], atol=1e-3)
    np.testing.assert_allclose(score, by_rows, atol=1e-3)
