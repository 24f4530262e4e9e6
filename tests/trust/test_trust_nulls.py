"""Each line's p-values on exact draws, and what each makes of a planted error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.trust.coordinates import View
from pushforward.trust.goodness import goodness_line
from pushforward.trust.importance import pareto_shape, weights_line
from pushforward.trust.line import Line, levels, verdict
from pushforward.trust.modes import joined_basins
from pushforward.trust.moves import Refined, energies_line, error_bounds
from pushforward.trust.nulls import flip_test
from pushforward.trust.rows import autocorrelation_time, duplicates_line, find_repeats, independent_rows
from pushforward.trust.settings import CheckSettings
from pushforward.trust.stein import stein_line

KEY = jax.random.key(4)
SMALL = CheckSettings(ksd_draws=200, num_bootstraps=199)


def normal_view(u):
    """Draws that are said to be standard normal."""
    u = np.asarray(u, np.float32)
    target = Target.from_log_density(lambda x: -0.5 * jnp.sum(x**2), dim=u.shape[1])
    return View(InFrame(target, Frame.identity(u.shape[1])), u, u, -u, -0.5 * (u**2).sum(axis=1))


def line(name="a", **fields):
    return Line(name=name, title=name, statistic=0.0, measure="", null="", found="", advice="", **fields)


# Of 200 uniform p-values, more than 22 are below 0.05 with a chance below 1e-4 (binomial).
MOST_OF_200 = 22


@pytest.mark.parametrize("dim", [1, 2, 12])
def test_stein_p_values_are_not_too_small(dim):
    rng = np.random.default_rng(dim)
    p = [stein_line(KEY, normal_view(rng.normal(size=(1000, dim)))).p_value for _ in range(200)]
    assert np.sum(np.array(p) < 0.05) <= MOST_OF_200


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("location of x[1]", lambda u: u + np.array([0, 0.1, 0])),
        ("scale of x[0]", lambda u: u * np.array([1.1, 1, 1])),
        ("scale of x[2]", lambda u: u * np.array([1, 1, 0.9])),
        ("tails of x[1]", lambda u: np.where(np.arange(3) == 1, np.clip(u, -1.9, 1.9) * 1.026, u)),
        ("x[0] against x[2]", lambda u: u @ np.array([[1, 0, 0.3], [0, 1, 0], [0, 0, 0.954]])),
    ],
)
def test_stein_names_what_is_wrong(name, spoil):
    found = stein_line(KEY, normal_view(spoil(np.random.default_rng(1).normal(size=(10_000, 3)))))
    assert found.p_value < 1e-6
    shown = [each["identity"] for each in found.details["worst"]]
    assert name in shown or name.replace("x[0] against x[2]", "x[2] against x[0]") in shown


@pytest.mark.parametrize("off", [0.0, 0.3])
def test_what_one_draw_carries_is_tested_in_bounded_form(off):
    # The score of one draw in ten thousand is as large as all others together: such is a funnel's neck.
    u = np.random.default_rng(0).normal(size=(10_000, 2))
    view = normal_view(u + np.array([off, 0.0]))
    score = np.array(view.score)
    score[0, 0] = 1e5
    found = stein_line(KEY, view._replace(score=score))
    assert found.details["bounded"] > 0
    assert (found.tested, found.details["left_out"]) == (1.0, 0)
    assert (found.p_value < 1e-6) == (off > 0)
    assert not off or found.details["worst"][0]["identity"] == "location of x[0]"


def test_a_line_that_could_test_little_weakens_the_verdict():
    said = [line(p_value=0.5), line("b", p_value=0.5, tested=0.1)]
    assert levels(said, 0.03) == ["ok", "caution"]
    assert "Not tested: only 10%" in said[1].told


def test_ksd_p_values_are_uniform_and_see_a_shift():
    rng = np.random.default_rng(0)
    keys = jax.random.split(jax.random.key(0), 101)
    p = [goodness_line(k, normal_view(rng.normal(size=(200, 2))), SMALL).p_value for k in keys[:100]]
    # Of 100 uniform p-values, more than 14 are below 0.05 with a chance of 1e-4.
    assert np.sum(np.array(p) < 0.05) <= 14
    # Not stuck near 1 either: a mean below 0.38 or above 0.62 has a chance of 1e-4.
    assert 0.38 < np.mean(p) < 0.62
    assert goodness_line(keys[100], normal_view(rng.normal(size=(200, 2)) + 0.7), SMALL).p_value < 0.01


def test_flips_are_exact_for_heavy_symmetric_differences():
    rng = np.random.default_rng(2)
    keys = jax.random.split(jax.random.key(1), 101)
    p = [flip_test(k, rng.standard_cauchy((300, 4)), 199).p_value for k in keys[:100]]
    assert np.sum(np.array(p) < 0.05) <= 14
    shifted = rng.normal(size=(300, 4)) + 0.6
    assert flip_test(keys[100], shifted, 199).p_value < 1e-6


def refined(before, after):
    energies = (0.5 * np.sum(np.asarray(a, np.float64) ** 2, axis=1) for a in (before, after))
    return Refined(jnp.asarray(before, jnp.float32), jnp.asarray(after, jnp.float32), *energies, 0.6, 25)


def test_bounds_on_errors_hold_and_are_not_idle():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4000, 3))
    # Half-way back from a shift of 0.3 and a spread of 1.4: wrong by more than what moved.
    before = x * [1.0, 1.4, 1.0] + [0.3, 0.0, 0.0]
    after = 0.8 * x * [1.0, 1.2, 1.0] + 0.6 * rng.normal(size=x.shape) + [0.15, 0.0, 0.0]
    bounds = error_bounds(refined(before, after))
    assert 0.05 < bounds["mean"][0] <= 0.15
    assert 0.02 < bounds["sd"][1] < 0.4
    assert bounds["mean"][2] == bounds["sd"][2] == 0.0


def test_energies_see_thin_tails():
    rng = np.random.default_rng(4)
    full = rng.normal(size=(4000, 2))
    thin = full[np.sum(full**2, axis=1) < 9.0][:3900]
    same = energies_line(jax.random.key(0), refined(full[:3900], rng.normal(size=(3900, 2))), SMALL)
    less = energies_line(jax.random.key(0), refined(thin, rng.normal(size=(3900, 2))), SMALL)
    assert same.p_value > 0.01
    assert less.p_value < 0.01


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
def test_pareto_shape_is_that_of_the_law(shape):
    # The estimator's standard deviation with 300 tail draws is (1 + k) / sqrt(300), at most 0.11.
    weights = stats.genpareto.rvs(shape, size=10_000, random_state=0)
    assert abs(pareto_shape(np.log(weights + 1e-9)) - shape) < 0.35


def test_weights_that_are_all_alike_are_perfect():
    found = weights_line(np.full(1000, 3.0))
    assert not found.breached
    assert found.details["efficiency"] == pytest.approx(1.0)
    assert found.details["log_z"] == pytest.approx(3.0)


def test_heavy_weights_are_flagged():
    rng = np.random.default_rng(0)
    found = weights_line(3.0 * rng.normal(size=10_000) ** 2)
    assert found.breached
    assert found.grave


def test_autocorrelation_time_of_an_autoregression():
    rng, rho, n = np.random.default_rng(5), 0.8, 40_000
    series = np.zeros(n)
    noise = rng.normal(size=n)
    for i in range(1, n):
        series[i] = rho * series[i - 1] + noise[i]
    assert autocorrelation_time(series) == pytest.approx((1 + rho) / (1 - rho), rel=0.25)
    rows = independent_rows(series[:, None].astype(np.float32), 10_000)
    assert 9 <= rows.stride <= 20
    assert independent_rows(rng.normal(size=(10_000, 5)), 10_000).stride == 1


def test_repeats_of_chains_are_told_from_copies():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4000, 2)).astype(np.float32)
    assert find_repeats(x).bad == 0
    halves = np.concatenate([x[:2000], x[:2000]])
    assert find_repeats(halves).bad == 2000
    assert find_repeats(rng.permutation(halves)).bad == 2000
    # A copy right after its original, unlike a rejection, is not followed by another.
    assert find_repeats(np.repeat(x[:2000], 2, axis=0)).bad == 2000
    moved = rng.random(4000) < 0.6
    chain = x[np.maximum.accumulate(np.where(moved, np.arange(4000), 0))]
    assert find_repeats(chain).bad == 0
    assert find_repeats(chain).rejections > 1000
    jittered = halves + 1e-8 * rng.normal(size=halves.shape)
    assert find_repeats(jittered).bad > 1900


def test_repeats_are_a_line_and_a_key_must_matter():
    x = np.random.default_rng(7).normal(size=(1000, 2)).astype(np.float32)
    fine = duplicates_line(x, x[::-1] + 1, find_repeats(x))
    assert fine.p_value == 1.0
    same = duplicates_line(x, x, find_repeats(x))
    assert same.p_value < 1e-10
    assert same.grave
    assert "key" in same.found


def test_single_precision_on_a_line_is_no_fault():
    x = np.asarray(jax.random.uniform(jax.random.key(0), (10_000, 1)))
    found = find_repeats(x)
    assert found.bad > 0
    assert duplicates_line(x, None, found).p_value > 0.01


def test_holm_shares_the_level():
    def of(*values):
        return levels([line(p_value=p) for p in values], 0.03)

    assert of(0.009, 0.5, 0.9) == ["caution", "ok", "ok"]
    assert of(0.011, 0.012, 0.013) == ["ok"] * 3
    assert of(0.009, 0.014, 0.029) == ["caution"] * 3
    assert levels([line(), line(breached=True, grave=True)], 0.03) == ["note", "do not trust"]
    assert verdict(["ok", "note"]) == "trust"
    assert verdict(["ok", "caution"]) == "caution"
    assert verdict(["caution", "do not trust"]) == "do not trust"


def test_a_line_has_one_way_of_being_flagged():
    with pytest.raises(ValueError, match="not both"):
        line(p_value=0.1, breached=True)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        line(p_value=1.5)


def test_basins_that_chains_cross_freely_are_one():
    # Of 100 chains in each of three basins, a fifth of the first cross to the second; one goes to the third.
    before = np.repeat([0, 1, 2], 100)
    after = before.copy()
    after[:20], after[100:120], after[21] = 1, 0, 2
    assert joined_basins(3, before, after).tolist() == [0, 0, 2]
