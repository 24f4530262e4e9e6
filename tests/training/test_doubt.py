"""A fit that ran to its end and is not the target says so."""

import warnings

import jax
import jax.numpy as jnp
import pytest

import pushforward as pf
from pushforward.training import Outcome, mending, teacher
from pushforward.training.doubt import doubt, least_efficiency
from pushforward.training.repair import Weighing


def weighing(efficiency, log_z=0.0):
    return Weighing(jnp.asarray(efficiency), jnp.asarray(log_z))


def test_more_dimensions_excuse_more_but_not_everything():
    least = [least_efficiency(dim) for dim in (1, 2, 10, 24, 50, 100, 1000)]
    assert least == sorted(least, reverse=True)
    assert least[0] == least[2] == 0.3
    assert least[-1] > 0


@pytest.mark.parametrize(
    ("dim", "efficiency", "log_z", "taught", "words"),
    [
        (2, 0.9, 0.0, 0.1, ""),
        (2, 0.9, 0.0, None, ""),
        (60, 0.2, 5.0, 5.3, ""),
        (2, 0.1, 0.0, 0.0, "0.1 of its draws is effective, which in 2 dimensions should be 0.3"),
        (60, 0.001, 0.0, 0.0, "in 60 dimensions"),
        (2, float("nan"), 0.0, 0.0, "effective"),
        # Half of the mass was lost on the way, and what is left is drawn exactly.
        (2, 1.0, -0.69, 0.0, "`log Z` is -0.69 by its draws and 0.00"),
        (2, 1.0, float("nan"), 0.0, "log Z"),
    ],
)
def test_what_speaks_against_a_sampler(dim, efficiency, log_z, taught, words):
    found = doubt(dim, weighing(efficiency, log_z), taught)
    assert words in found
    assert bool(words) == bool(found)


def test_a_doubtful_fit_is_handed_back_with_a_warning(monkeypatch):
    monkeypatch.setattr(teacher, "particles_for", lambda target: 1024)
    settings = pf.preset("default", num_steps=2, width=8)

    def fit(**choices):
        return pf.fit(jax.random.key(0), pf.targets.gaussian(), settings=settings, progress=False, **choices)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit().outcome is Outcome.FINISHED
    monkeypatch.setattr(mending, "doubt", lambda *weighed: "it is a planted doubt.")
    with pytest.warns(UserWarning, match=r"not the target yet.*planted doubt.*`check`"):
        done = fit()
    assert done.outcome is Outcome.INACCURATE
    assert not done.outcome.good
    assert done.sampler.about["outcome"] == "INACCURATE"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(throw=False).outcome is Outcome.INACCURATE
