"""How a budget is spent: what it only cuts is not planned, and what it plans fits."""

import signal
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from quick import quick

import pushforward as pf
from pushforward.base import Algorithm
from pushforward.frame import Frame
from pushforward.latents import standard
from pushforward.probing import ROWS
from pushforward.recipe.methods import for_target
from pushforward.recipe.peaks import Peaks
from pushforward.recipe.stages import Stage
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.run.clock import Clock
from pushforward.run.driver import Driver
from pushforward.targets import gmm40
from pushforward.training import Outcome

pytestmark = pytest.mark.quick_compilation

KEY = jax.random.key(0)
NUMBERS = Recipe().clock


def begun(seconds_ago, **options):
    """A clock that has been running for some time."""
    clock = Clock(Recipe(), **options)
    clock.started = time.monotonic() - seconds_ago
    return clock


def test_without_a_budget_nothing_ends():
    whole = Clock(Recipe())
    assert whole.until(1.0) == float("inf")
    assert whole.another(1e9, 1.0)
    recipe = for_target(Recipe(), gmm40())
    assert whole.particles(gmm40(), recipe) == recipe.annealing.num_particles


def test_a_budget_that_cuts_is_all_there_for_every_stage():
    cuts = Clock(Recipe(), seconds=10.0)
    assert cuts.until(0.5) == cuts.until(1.0) == cuts.started + 10.0
    plans = Clock(Recipe(), seconds=10.0, plans=True)
    assert plans.until(0.5) == plans.started + 5.0


def test_rounds_end_before_they_would_overrun():
    plans = begun(30.0, seconds=100.0, plans=True)
    assert plans.another(20.0, 1.0)
    assert not plans.another(40.0, 1.0)
    assert begun(30.0, seconds=100.0).another(1000.0, 1.0)
    # The first map takes longer than the round before it, and part of it counts as training.
    assert plans.another(8.0, 6.0)
    assert not plans.another(9.0, 6.0)


def test_little_time_means_few_particles(monkeypatch):
    ticks = [0.0]

    def tick():
        ticks[0] += ROWS * 1e-6
        return ticks[0]

    # A look at the target takes a millionth of a second.
    monkeypatch.setattr(time, "perf_counter", tick)
    recipe = for_target(Recipe(), gmm40())
    numbers = [
        Clock(recipe, seconds=seconds, plans=True).particles(gmm40(), recipe) for seconds in (0.01, 3.0, 1e3)
    ]
    assert numbers == [recipe.annealing.least_on_memory, 1024, 32768]


def test_steps_fill_the_time(monkeypatch):
    now, traced = [0.0], [0]

    def tick():
        now[0] += 1.0
        return np.zeros((), np.float32)

    def step(key, state):
        # Each time the step is traced takes five seconds, and each time it is run one.
        traced[0] += 1
        now[0] += 5.0
        state = state + io_callback(tick, jnp.zeros(()))
        return state, {"loss": state}

    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def steps(seconds, usual=1000):
        now[0] = traced[0] = 0
        algorithm = Algorithm(init=lambda key: jnp.zeros(()), step=lambda *a: step(*a), sample=None)  # pyright: ignore
        return Clock(Recipe(), seconds=seconds, plans=True).steps(KEY, algorithm, jnp.zeros(()), usual)

    found = steps(1000.0)
    compiling = 5 * traced[0] + 1
    # 0.92 of 1,000 s, less compilation and 9 steps that were timed, less compilation once more.
    assert compiling > 5
    assert found == 920 - compiling - 9 - compiling
    assert steps(1e6) == NUMBERS.longer * 1000
    # Compiling leaves next to nothing, or nothing: a few steps, or none.
    assert steps(2.0 * compiling + 12.0) == NUMBERS.least_steps
    assert steps(20.0) == 0


def slow(key, state, recipe, clock):
    """A stage that takes far too long."""
    time.sleep(60.0)
    yield state


def seen(key, state, recipe, clock):
    """A stage that finds where two peaks are, and no law yet."""
    points = np.array([[-2.0, 1.0], [3.0, 0.0]])
    yield state.replace(peaks=Peaks(points, np.tile(np.eye(2), (2, 1, 1)), np.zeros(2)))


def found(key, state, recipe, clock):
    """A stage that finds a law."""
    yield state.replace(latent=standard(2))


def stages(*functions):
    return tuple(Stage(function.__name__, lambda state, recipe: True, function) for function in functions)


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        ((*stages(found, slow), pf.methods.TRAIN), Outcome.UNSTARTED),
        ((*stages(seen, slow), pf.methods.TRAIN), Outcome.UNSTARTED),
        (stages(found, slow), Outcome.OUT_OF_TIME),
    ],
    ids=["a law", "peaks alone", "a method without training"],
)
def test_a_budget_ends_a_fit_in_the_middle_of_a_stage(run, outcome):
    """With whatever there is, and it says if no step was taken."""
    recipe, before = for_target(pf.methods.KL().recipe, gmm40()), signal.getsignal(signal.SIGALRM)
    driver = Driver(KEY, State(target=gmm40()), recipe, Clock(recipe, seconds=1.0, plans=True))
    began = time.monotonic()
    driver.run(run)
    assert time.monotonic() - began < 30.0
    assert driver.state.outcome is outcome
    assert outcome.good
    assert [phase["phase"] for phase in driver.phases] == [stage.name for stage in run[:2]]
    assert np.isfinite(driver.state.sampler().sample(KEY, 100)).all()
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_budget_that_is_over_before_the_first_step_says_so():
    """The network as it began is handed back, or the law that was found."""
    settings = pf.Settings(**TINY | {"num_steps": 2000})
    done = fit(method=pf.methods.KL().replace(stages=(pf.methods.TRAIN,), training=settings), budget=1e-3)
    assert done.outcome is Outcome.UNSTARTED
    assert "no step" in done.outcome.value
    assert done.history == []


def few(method="default", **changes):
    """So few particles that samplers are poor, which is why those who ask for one say `throw=False`."""
    few = {
        "annealing.num_particles": 512,
        "reweight.num_draws": 2**12,
        "reweight.marginal_steps": 100,
        "fallback.most_dim": 1,
        # No law is so good that it is not trained on.
        "judge.learnt": 2.0,
        **{"width": 8, "batch_size": 64},
    }
    return quick(method, **few | changes)


def trained(done):
    """What is told of the training."""
    return next(phase for phase in done.phases if phase["phase"] == "train")


def fit(target=None, **options):
    return pf.fit(KEY, target or pf.targets.gaussian(), progress=False, throw=False, **options)


def test_a_fit_takes_the_steps_that_were_planned():
    """Another width of the method is planned too."""
    method = few(**{"clock.longer": 0.01})
    done = fit(method=method, budget="10m")
    assert trained(done)["planned_steps"] == 6
    assert done.settings.num_steps == done.history[-1]["step"] == 6
    assert done.sampler.about["settings"]["num_steps"] == 6


TINY = {"frame": "identity", "width": 4, "depth": 1, "score_width": 4, "score_depth": 1, "num_steps": 7,
        "batch_size": 16, "score_batch_size": 16, "score_steps": 1}  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        {"method": few(), "steps": 7},
        {"method": few(num_steps=7)},
        {"settings": pf.preset("kl", extra_latents=0, **TINY)},
        {"settings": pf.Settings(**TINY)},
    ],
    ids=["steps", "method", "settings", "settings of no method"],
)
def test_steps_that_are_given_are_not_planned(given):
    done = fit(**given, budget="10m")
    assert "planned_steps" not in trained(done)
    assert done.settings.num_steps == done.history[-1]["step"] == 7


def test_a_fit_that_can_go_on_later_is_not_planned(tmp_path):
    done = fit(method=few(), budget="10m", checkpoint=tmp_path, callback=lambda row: row["stage"] == "train")
    assert done.outcome is Outcome.STOPPED
    assert "planned_steps" not in trained(done)
    assert done.settings.num_steps == pf.preset("default").num_steps


def test_training_stops_when_there_is_nothing_left():
    """The fit begins at a law of which nobody has told how efficient it is, and the first look reaches the bar."""
    exact = standard(4)
    target = pf.Target.from_log_density(exact.log_density, dim=4)
    start = State(
        target=target,
        frame=Frame.identity(4),
        latent=exact,
        draws=exact.sample(KEY, 512),
        log_z=0.0,
        good=True,
    )
    done = fit(target, start=start, method=few(**{"judge.learnt": 0.5}))
    assert done.outcome is Outcome.CONVERGED
    assert len(done.history) == 1
    done = fit(target, start=start, method=few(num_steps=4))
    assert done.outcome is not Outcome.CONVERGED
    assert len(done.history) == 4


def test_few_steps_are_few_everywhere():
    """The stages before the training do less in proportion, and no less than they can."""
    recipe = for_target(Recipe(), gmm40())
    done = fit(method=few(**{"annealing.num_particles": 32768}), steps=7)
    assert done.history[-1]["step"] == 7
    assert done.recipe.annealing.num_particles == recipe.annealing.least_on_memory
    assert done.recipe.maps.steps_first < 20 < recipe.maps.steps_first
    whole = few(**{"annealing.num_particles": 512, "num_steps": 7})
    assert fit(method=whole).recipe.annealing.num_particles == 512
