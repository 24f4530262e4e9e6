import jax
import jax.numpy as jnp
import pytest

import pushforward as pf
from pushforward.base import Algorithm
from pushforward.targets import correlated_gaussian, gaussian, gmm40
from pushforward.training import budget, phases, teacher
from pushforward.training.budget import FEWEST_PARTICLES, LONGER, Budget
from pushforward.training.fit import _usual_steps
from pushforward.training.outcome import Outcome
from pushforward.training.settings import Settings

pytestmark = pytest.mark.quick_compilation


def test_without_a_budget_nothing_ends():
    whole = Budget()
    assert whole.until() == float("inf")
    assert whole.another_round(1e9)
    assert whole.particles(gmm40()) is None


def test_a_budget_that_cuts_is_all_there_for_every_phase():
    cuts = Budget(100.0, 10.0)
    assert cuts.until(0.5) == cuts.until() == 110.0
    assert Budget(100.0, 10.0, plans=True).until(0.5) == 105.0


def test_rounds_end_before_they_would_overrun(monkeypatch):
    monkeypatch.setattr(budget.time, "monotonic", lambda: 30.0)
    plans = Budget(0.0, 100.0, plans=True)
    assert plans.another_round(20.0)
    assert not plans.another_round(40.0)
    assert Budget(0.0, 100.0).another_round(1000.0)
    # The first map takes longer than the round before it, and part of it counts as training.
    assert plans.another_round(8.0, ahead=6.0)
    assert not plans.another_round(9.0, ahead=6.0)


def test_little_time_means_few_particles(monkeypatch):
    monkeypatch.setattr(budget, "seconds_a_look", lambda target, points: 1e-6)
    numbers = [Budget(0.0, seconds, plans=True).particles(gmm40()) for seconds in (0.01, 3.0, 1000.0)]
    assert numbers == [FEWEST_PARTICLES, 1024, 32768]


def test_steps_fill_the_time(monkeypatch):
    now = [0.0]

    def piece(algorithm, key, state, total, first, number):
        # Compiling takes 5 seconds, a step one.
        now[0] += int(number) + (5.0 if now[0] == 0.0 else 0.0)
        return state, total

    monkeypatch.setattr(budget, "run_piece", piece)
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    algorithm = Algorithm(
        init=lambda key: jnp.zeros(()), step=lambda key, state: (state, {"loss": state}), sample=None
    )  # pyright: ignore

    def steps(seconds, usual=1000):
        now[0] = 0.0
        key = jax.random.key(0)
        return Budget(0.0, seconds, plans=True).steps(key, algorithm, jnp.zeros(()), usual)

    # 0.92 of 1,000 s, less 6 s and 9 steps that were timed, less 6 s to compile again.
    assert steps(1000.0) == 920 - 6 - 9 - 6
    assert steps(1e6) == LONGER * 1000
    assert steps(20.0) == budget.FEWEST_STEPS


@pytest.fixture
def quick(monkeypatch):
    """So few particles that the samplers are poor, which is why those who ask for one say `throw=False`."""
    for module in (budget, teacher):
        monkeypatch.setattr(module, "particles_for", lambda target: 512)


def test_a_fit_takes_the_steps_that_were_planned(quick, monkeypatch):
    monkeypatch.setattr(Budget, "steps", lambda *_: 9)
    monkeypatch.setattr(phases, "learnt", lambda row: False)
    done = pf.fit(jax.random.key(0), gaussian(), budget="10m", progress=False, throw=False)
    assert done.settings.num_steps == done.history[-1]["step"] == 9
    assert done.sampler.about["settings"]["num_steps"] == 9


def test_other_settings_of_a_method_are_planned_too():
    assert _usual_steps(pf.preset(width=8))
    assert not _usual_steps(pf.preset(num_steps=7))
    assert not _usual_steps(Settings())


@pytest.mark.parametrize("given", [{"steps": 7}, {"settings": pf.preset("default", num_steps=7)}])
def test_steps_that_are_given_are_not_planned(given, quick, monkeypatch):
    monkeypatch.setattr(phases.Work, "_plan", lambda work: pytest.fail("it was planned"))
    done = pf.fit(jax.random.key(0), gaussian(), budget="10m", progress=False, throw=False, **given)
    assert done.settings.num_steps == 7


def test_a_fit_that_can_go_on_later_is_not_planned(quick, monkeypatch, tmp_path):
    monkeypatch.setattr(phases.Work, "_plan", lambda work: pytest.fail("it was planned"))
    monkeypatch.setattr(phases.Work, "train", lambda work: work._end(Outcome.OUT_OF_TIME))
    words = {"budget": "10m", "checkpoint": tmp_path, "progress": False, "throw": False}
    done = pf.fit(jax.random.key(0), gaussian(), **words)
    assert done.settings.num_steps == pf.preset("default").num_steps


def test_training_stops_when_there_is_nothing_left(quick, monkeypatch):
    # A lesson that is not good enough to skip training, and a bar that the first look reaches.
    monkeypatch.setattr(phases, "LEARNT", 2.0)
    monkeypatch.setattr(phases, "learnt", lambda row: row["efficiency"] > 0.5)
    target = correlated_gaussian(jax.random.key(0), 4, 10.0)
    done = pf.fit(jax.random.key(0), target, progress=False)
    assert done.outcome is Outcome.CONVERGED
    assert len(done.history) == 1
