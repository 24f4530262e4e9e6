"""When a sampler is good enough, when it is given up, and how a fit that is not the target says so."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick import quick

import pushforward as pf
from pushforward.frame import Frame
from pushforward.latents import standard
from pushforward.recipe.judge import (
    Weighing,
    against,
    can_fall_back,
    good_for_maps,
    in_vain,
    least_efficiency,
)
from pushforward.recipe.state import State
from pushforward.recipe.table import Judge, Maps, Recipe
from pushforward.training import Outcome

pytestmark = pytest.mark.quick_compilation


def weighing(efficiency, log_z=0.0):
    return Weighing(jnp.asarray(efficiency), jnp.asarray(log_z))


def test_more_dimensions_excuse_more_but_not_everything():
    least = [least_efficiency(dim, Judge()) for dim in (1, 2, 10, 24, 50, 100, 1000)]
    assert least == sorted(least, reverse=True)
    assert least[0] == least[2] == 0.3
    assert least[-1] > 0


@pytest.mark.parametrize(
    ("dim", "efficiency", "log_z", "particles", "words"),
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
def test_what_speaks_against_a_sampler(dim, efficiency, log_z, particles, words):
    found = against(dim, weighing(efficiency, log_z), particles, Judge())
    assert words in found
    assert bool(words) == bool(found)


def test_what_is_asked_of_a_law_before_maps_falls_with_the_dimension_but_not_without_end():
    few, many = (
        np.array([good_for_maps(dim, Maps()) for dim in dims]) for dims in (range(4, 20), range(20, 101))
    )
    assert (few == 0.9).all()
    assert (np.diff(many) <= 0).all()
    # As many nats in a coordinate, until a law would be less than 0.4 efficient.
    assert -np.log(many[10]) / 30 == pytest.approx(-np.log(many[0]) / 20)
    assert many[-1] == 0.4


@pytest.mark.parametrize(
    ("row", "vain"),
    [
        ({"step": 40, "efficiency": 0.001, "below": 3.0}, True),
        ({"step": 30, "efficiency": 0.001, "below": 3.0}, False),
        ({"step": 10, "efficiency": 0.001, "below": 9.0}, True),
        ({"step": 9, "efficiency": 0.001, "below": 9.0}, False),
        ({"step": 40, "efficiency": 0.02, "below": 9.0}, False),
        ({"step": 40, "efficiency": float("nan"), "below": 9.0}, True),
        ({"step": 40, "efficiency": 0.001, "below": 0.1}, False),
        ({"step": 40, "efficiency": 0.001, "below": float("nan")}, True),
        ({"step": 40}, False),
    ],
)
def test_training_is_given_up_late_and_only_where_draws_lie_low_and_weigh_nothing(row, vain):
    assert in_vain(row, 100, 8, Recipe()) is vain
    assert not in_vain(row, 100, 1000, Recipe())


def test_particles_stand_for_laws_in_few_dimensions_only():
    found = [can_fall_back(dim, Recipe()) for dim in (1, 2, 39, 100, 1000)]
    assert found == [False, True, True, True, False]


SMALL = {"num_steps": 2, "width": 8, "reweight.num_draws": 2**12,
         # No law is so good that it is not trained on.
         "judge.learnt": 2.0}  # fmt: skip
SEVERE = {"judge.never": 2.0, "fallback.most_dim": 1}
"""No sampler is as good as this judge asks for, and there is nothing to fall back to."""
SEVERELY = "effective, which in 2 dimensions should be 2 at least"


LAW = standard(2)
FOUND = State(
    target=pf.Target.from_log_density(LAW.log_density, dim=2), frame=Frame.identity(2), latent=LAW,
    draws=LAW.sample(jax.random.key(1), 1024), log_z=0.0, good=True,
)  # fmt: skip
"""What the stages before the training have found: the target itself."""


def fit(*, changes, **choices):
    method = quick(**SMALL, **changes)
    return pf.fit(jax.random.key(0), FOUND.target, method=method, start=FOUND, progress=False, **choices)


def test_a_fit_that_is_not_the_target_is_handed_back_with_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(changes={}).outcome is Outcome.FINISHED
    with pytest.warns(UserWarning, match=rf"not the target yet: a share.*{SEVERELY}.*`check`"):
        done = fit(changes=SEVERE)
    assert done.outcome is Outcome.INACCURATE
    assert not done.outcome.good
    about = done.sampler.about
    assert about["outcome"] == "INACCURATE"
    assert SEVERELY in about["why"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(changes=SEVERE, throw=False).outcome is Outcome.INACCURATE


def test_a_fit_that_had_no_time_says_so_and_is_judged_once_it_goes_on(tmp_path):
    assert fit(changes=SEVERE, budget=0.01, checkpoint=tmp_path).outcome is Outcome.UNSTARTED
    with pytest.warns(UserWarning, match=f"not the target yet.*{SEVERELY}"):
        done = fit(changes=SEVERE, checkpoint=tmp_path)
    assert done.outcome is Outcome.INACCURATE
