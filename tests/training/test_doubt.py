"""A fit that ran to its end and is not the target says so."""

import warnings

import jax
import jax.numpy as jnp
import pytest

import pushforward as pf
from pushforward.training import Outcome, mending, phases, teacher
from pushforward.training.doubt import doubt, least_efficiency
from pushforward.training.repair import Weighing

PLANTED = "it is a planted doubt."


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
        (2, 0.1, 0.0, 0.0, "0.1 of the map's draws is effective, which in 2 dimensions should be 0.3"),
        (60, 0.001, 0.0, 0.0, "in 60 dimensions"),
        (2, float("nan"), 0.0, 0.0, "effective"),
        # Half of the mass was lost on the way, and what is left is drawn exactly.
        (2, 1.0, -0.69, 0.0, "`log Z` is -0.69 by the map's draws and 0.00"),
        (2, 1.0, float("nan"), 0.0, "log Z"),
    ],
)
def test_what_speaks_against_a_sampler(dim, efficiency, log_z, taught, words):
    found = doubt(dim, weighing(efficiency, log_z), taught)
    assert words in found
    assert bool(words) == bool(found)


def test_a_doubtful_fit_is_handed_back_with_a_warning(monkeypatch):
    settings = pf.preset("default", num_steps=2, width=8)

    def fit(**choices):
        return pf.fit(jax.random.key(0), pf.targets.gaussian(), settings=settings, progress=False, **choices)

    monkeypatch.setattr(teacher, "particles_for", lambda target: 1024)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit().outcome is Outcome.FINISHED
    monkeypatch.setattr(mending, "doubt", lambda *weighed: PLANTED)
    with pytest.warns(UserWarning, match=r"not the target yet: it is a planted doubt.*`check`"):
        done = fit()
    assert done.outcome is Outcome.INACCURATE
    assert not done.outcome.good
    assert (done.sampler.about["outcome"], done.sampler.about["why"]) == ("INACCURATE", PLANTED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(throw=False).outcome is Outcome.INACCURATE


def test_a_fit_that_was_cut_and_can_go_on_is_still_out_of_time(monkeypatch, tmp_path):
    monkeypatch.setattr(teacher, "particles_for", lambda target: 1024)
    monkeypatch.setattr(mending, "doubt", lambda *weighed: PLANTED)
    monkeypatch.setattr(phases.Work, "train", lambda work: work._end(Outcome.OUT_OF_TIME))
    words = {"settings": pf.preset("default", num_steps=2, width=8), "progress": False}
    with pytest.warns(UserWarning, match="time budget was reached.*planted doubt"):
        done = pf.fit(jax.random.key(0), pf.targets.gaussian(), budget="60s", checkpoint=tmp_path, **words)
    assert done.outcome is Outcome.OUT_OF_TIME
