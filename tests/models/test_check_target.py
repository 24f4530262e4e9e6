"""The table before training: every line seen to be good, and seen to be bad."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.preflight.checks import require_target as refuse

pytestmark = pytest.mark.usefixtures("unhooked")


def target(fn, dim=2):
    return pf.Target.from_log_density(fn, dim=dim, name="mine")


def good(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2 / jnp.array([1.0, 400.0]))


@jax.custom_jvp
def twisted(x):
    return good(x)


@twisted.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return good(x), -2.0 * jnp.sum(t * x)


def verdicts(report):
    return {line.what: line.verdict for line in report.lines}


def test_a_good_target_is_good_in_every_line_and_its_scales_are_right():
    report = pf.check_target(target(good))
    assert report.ok
    assert verdicts(report) == dict.fromkeys(
        ("output", "cost", "support", "finite", "precision", "gradient", "proper", "scales"), "good"
    )
    np.testing.assert_allclose([c.scale for c in report.coordinates], [1.0, 20.0], rtol=0.02)
    np.testing.assert_allclose([c.place for c in report.coordinates], 1.0, atol=0.1)
    text = str(report)
    for word in ("mine, 2 coordinates", "microseconds a point", "x[1]", "finite differences"):
        assert word in text


IMPROPER = {
    "missing sign": (lambda x: -good(x), "grows"),
    "no prior on one": (lambda x: -0.5 * x[0] ** 2 + 1e-6 * jnp.sin(x[1]), "x[1] -> +infinity"),
    "one-sided": (lambda x: -0.5 * x[0] ** 2 - jnp.logaddexp(0.0, -x[1]), "x[1] -> +infinity"),
    "only the sum": (lambda x: -0.5 * (x[0] + x[1]) ** 2, "x[1]"),
    "linear": (lambda x: -0.5 * x[0] ** 2 + x[1], "grows"),
}


@pytest.mark.parametrize("name", IMPROPER)
def test_improper_targets_are_refused_with_the_way_out(name):
    fn, words = IMPROPER[name]
    with pytest.raises(ValueError, match=r"`target`: the function 'mine'.*improper") as caught:
        refuse(jax.random.key(1), target(fn))
    assert words in str(caught.value)


def test_improper_posteriors_of_named_parameters_name_them():
    flat = pf.Target.from_log_density(
        lambda p: -0.5 * (p["mu"] - 1.0) ** 2 - jnp.log(p["tau"]), example={"mu": 0.0, "tau": 1.0},
        constraints={"tau": "positive"},
    )  # fmt: skip
    report = pf.check_target(flat)
    assert (report.ok, verdicts(report)["proper"]) == (False, "bad")
    assert "tau (positive, free)" in str(report)


PROPER = {
    "heavy tails": lambda: pf.targets.get("student_t"),
    "funnel": lambda: pf.targets.funnel(),
    "far away": lambda: target(lambda x: -0.5 * jnp.sum((x - 5000.0) ** 2)),
    "narrow ridge": lambda: target(lambda x: -0.5 * (x[0] + x[1]) ** 2 * 1e6 - 0.5 * x[0] ** 2),
    "scale parameter": lambda: pf.Target.from_log_density(
        lambda p: -jnp.log1p(p["tau"] ** 2) - 3 * jnp.log(p["tau"]) - 1.0 / p["tau"] ** 2, example={"tau": 1.0},
        constraints={"tau": "positive"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROPER)
def test_proper_targets_pass(name):
    refuse(jax.random.key(2), PROPER[name]())


def test_a_wrong_gradient_is_refused():
    with pytest.raises(ValueError, match="gradient that is not its slope"):
        refuse(jax.random.key(0), target(twisted))
    assert verdicts(pf.check_target(target(twisted)))["gradient"] == "bad"


def test_other_bad_targets_are_lines_and_not_errors():
    for fn, what in ((lambda x: x, "output"), (lambda x: good(x) * jnp.nan, "finite")):
        report = pf.check_target(target(fn))
        assert (report.ok, verdicts(report)[what]) == (False, "bad")
    with pytest.raises(TypeError, match="must be a Target; got function"):
        pf.check_target(good)
