"""Exact draws are trusted, each planted defect is not, and what cannot be checked is refused."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trust_targets import mixture

import pushforward as pf
from pushforward.frame import Frame
from pushforward.latents import NormalMixture
from pushforward.networks import MLP
from pushforward.sampler import Sampler
from pushforward.trust.basins import find_basins
from pushforward.trust.census import Census
from pushforward.trust.modes import modes_line

KEY = jax.random.key(3)


@pytest.fixture
def judge(census_of, settings):
    def check(sampler, target, **options):
        return pf.check(KEY, sampler, target, census=census_of(target), settings=settings, **options)

    return check


@pytest.mark.parametrize("name", ["three_modes", "one_mode", "heavy"])
def test_exact_draws_are_trusted(name, judge, request):
    target = request.getfixturevalue(name)
    report = judge(target.sample, target)
    assert report.verdict == "trust", str(report)


DEFECTS = {
    "sd too large": ("one_mode", lambda x, t: t.mean + (x - t.mean) * jnp.array([1.1, 1.0]), "stein"),
    "sd too small": ("one_mode", lambda x, t: t.mean + (x - t.mean) * jnp.array([1.0, 0.9]), "stein"),
    "mean off": ("one_mode", lambda x, t: x + jnp.array([0.2, 0.0]), "stein"),
    "no correlation": (
        "one_mode",
        lambda x, t: jnp.stack([x[:, 0], jnp.roll(x[:, 1], 1)], axis=1),
        "stein",
    ),
    "twice": ("one_mode", lambda x, t: jnp.tile(x[: len(x) // 2], (2, 1)), "duplicates"),
    "twice in a row": ("one_mode", lambda x, t: jnp.repeat(x[: len(x) // 2], 2, axis=0), "duplicates"),
    "dropped mode": ("three_modes", lambda x, t: mixture((0.5, 0.5, 1e-9)).sample(KEY, len(x)), "modes"),
    "weights": ("three_modes", lambda x, t: mixture((0.63, 0.27, 0.1)).sample(KEY, len(x)), "modes"),
    "thin tails": (
        "heavy",
        lambda x, t: jnp.sqrt(5 / 3) * jax.random.normal(KEY, x.shape),
        "stein",
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_planted_defects_are_flagged(name, judge, request):
    fixture, spoil, line = DEFECTS[name]
    target = request.getfixturevalue(fixture)
    report = judge(spoil(target.sample(KEY, 10_000), target), target)
    assert report.verdict != "trust", str(report)
    assert report.levels[[each.name for each in report.lines].index(line)] != "ok", str(report)


def test_a_mode_that_walks_missed_but_the_sampler_has_is_weighed(three_modes, census_of, settings):
    whole = census_of(three_modes)
    basins = whole.basins
    few = basins.peaks._replace(
        **{name: getattr(basins.peaks, name)[:2] for name in ("points", "choleskys", "log_densities")}
    )
    blind = Census(three_modes, find_basins(three_modes, few), np.full((4, 2), 0.5), np.zeros(4))
    draws = np.asarray(three_modes.sample(KEY, 4000))
    seen = blind.extended(jax.random.key(1), draws, settings)
    assert seen.basins.count == 3
    assert modes_line(draws, seen).p_value > 0.01
    assert whole.extended(jax.random.key(1), draws, settings) is whole


def test_a_chain_is_judged_by_what_it_is_worth(one_mode, judge):
    noise = one_mode.sample(jax.random.key(5), 20_000) - one_mode.mean
    rho = 0.7

    def step(x, e):
        x = rho * x + jnp.sqrt(1 - rho**2) * e
        return x, x

    chain = np.asarray(jax.lax.scan(step, noise[0], noise)[1] + one_mode.mean)
    report = judge(chain, one_mode)
    assert report.verdict == "trust", str(report)
    assert report["dependence"].statistic == pytest.approx((1 + rho) / (1 - rho), rel=0.25)
    assert report.num_judged < 5000


def test_draws_that_are_not_finite_are_not_trusted(one_mode, judge):
    x = np.array(one_mode.sample(KEY, 2000))
    x[:300] = np.nan
    report = judge(x, one_mode)
    assert report.verdict == "do not trust"
    assert "300" in report["support"].found


def test_a_reference_is_compared(one_mode, judge):
    x = one_mode.sample(KEY, 10_000)
    reference = one_mode.sample(jax.random.key(9), 4000)
    good, bad = judge(x, one_mode, reference=reference), judge(x, one_mode, reference=reference + 0.3)
    assert good.verdict == "trust", str(good)
    assert bad["reference moments"].p_value < 1e-6
    assert bad["reference"].p_value < 0.01


def square_sampler(target, about="{}"):
    """The target's own mixture as a latent, pushed through a map that changes nothing."""
    latent = NormalMixture(target.weights, target.means, target.scales)
    unchanged = MLP((jnp.eye(2),), (jnp.zeros(2),), "silu", skip=False)
    return Sampler(latent, unchanged, Frame.identity(2), about)


def test_a_sampler_with_a_density_is_weighed(three_modes, judge):
    report = judge(square_sampler(three_modes), three_modes)
    assert report.verdict == "trust", str(report)
    assert report["importance"].details["efficiency"] == pytest.approx(1.0, abs=1e-3)
    assert report["importance"].details["log_z"] == pytest.approx(0.0, abs=1e-3)


def test_a_report_is_text_json_and_html(one_mode, judge):
    report = judge(one_mode.sample, one_mode)
    assert str(report).startswith("trust")
    held = json.loads(report.dumps())
    assert held["verdict"] == "trust"
    assert {line["name"] for line in held["lines"]} >= {
        "stein",
        "ksd",
        "moves",
        "energies",
        "modes",
        "duplicates",
    }
    assert all(line["null"] and line["advice"] for line in held["lines"])
    page = report.as_html()
    assert page.startswith("<section>")
    assert "data:image/png;base64," in page
    with pytest.raises(KeyError, match="stein"):
        report["nothing"]


@pytest.mark.usefixtures("unhooked")
def test_what_cannot_be_checked_is_refused(three_modes, heavy, census_of):
    x = np.zeros((500, 2), np.float32)
    other = square_sampler(three_modes, json.dumps({"target": "rosenbrock"}))
    for error, words, call in [
        (TypeError, "jax.random.key", lambda: pf.check(0, x, three_modes)),
        (TypeError, "from_log_density", lambda: pf.check(KEY, x, lambda x: 0.0)),
        (ValueError, r"\(n, 2\)", lambda: pf.check(KEY, np.zeros((500, 3)), three_modes)),
        (ValueError, "reshape", lambda: pf.check(KEY, np.zeros((4, 500, 2)), three_modes)),
        (ValueError, "at least 200", lambda: pf.check(KEY, x[:10], three_modes)),
        (TypeError, "function", lambda: pf.check(KEY, "draws.npy", three_modes)),
        (ValueError, r"\(10000, 2\)", lambda: pf.check(KEY, lambda key, n: x, three_modes)),
        (ValueError, "`reference`", lambda: pf.check(KEY, x, three_modes, reference=np.zeros((500, 3)))),
        (
            ValueError,
            "`reference` must be finite",
            lambda: pf.check(KEY, x, three_modes, reference=x + np.nan),
        ),
        (ValueError, "'rosenbrock'", lambda: pf.check(KEY, other, three_modes)),
        (ValueError, "dimension, 3", lambda: pf.check(KEY, other, pf.targets.gaussian(3))),
        (ValueError, "`census`", lambda: pf.check(KEY, x, heavy, census=census_of(three_modes))),
        (ValueError, "`level`", lambda: pf.CheckSettings(level=0.9)),
        (ValueError, "`num_draws`", lambda: pf.CheckSettings(num_draws=10)),
    ]:
        with pytest.raises(error, match=words):
            call()
