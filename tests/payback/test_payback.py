"""Break-even: the arithmetic against closed forms, a chain whose effective size is known, and bad input."""

import json
import math
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.base import Algorithm
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.payback import BreakEven
from pushforward.payback.measure import run_chains, units_and_pace
from pushforward.sampler import Sampler

KEY = jax.random.key(0)
FIGURES = {"target": "banana", "train_seconds": 40.0, "seconds_per_draw": 1e-6, "nuts_setup_seconds": 4.0,
           "nuts_seconds_per_effective_draw": 1e-3, "nuts_draws": 8000, "nuts_ess": 1500.0, "nuts_r_hat": 1.0,
           "nuts_divergent": 0.0}  # fmt: skip


def sampler(about):
    network = mlp(KEY, 2, 2, width=4, depth=1, skip=True)
    return Sampler(Normal(2), network, Frame.identity(2), json.dumps(about))


def target(name="flat"):
    return pf.Target.from_log_density(lambda x: -0.5 * jnp.sum(x**2), dim=2, name=name)


STORY = {
    "target": "flat",
    "phases": [{"phase": "teacher", "seconds": 30.0}, {"phase": "train", "seconds": 10.5}],
}


def test_the_point_where_the_costs_meet():
    found = BreakEven(**FIGURES)
    n = found.draws
    assert 40.0 + n * 1e-6 == pytest.approx(4.0 + n * 1e-3)
    assert "after 36,000 effective draws" in str(found)
    assert BreakEven(**{**FIGURES, "train_seconds": 3.0}).draws == 0
    never = BreakEven(**{**FIGURES, "nuts_seconds_per_effective_draw": 1e-7})
    assert math.isinf(never.draws)
    assert never.as_json()["draws"] is None
    assert "never" in str(never)
    json.dumps(never.as_json(), allow_nan=False)


def test_what_to_keep_in_mind_is_said():
    assert len(BreakEven(**FIGURES).notes()) == 1
    bad = BreakEven(**{**FIGURES, "nuts_r_hat": math.nan, "nuts_divergent": 0.2, "nuts_ess": 12.0})
    words = " ".join(bad.notes())
    assert "disagree" in words
    assert "20% of NUTS' steps diverged" in words
    assert "few effective draws" in words


class Chain:
    """Stands in for NUTS: every chain draws anew once in `stay` steps and otherwise stays where it is."""

    def __init__(self, stay):
        self.stay = stay

    def __call__(self, target, num_chains, num_warmup):
        class Position(NamedTuple):
            position: jax.Array

        class Chains(NamedTuple):
            chains: Position
            count: jax.Array

        def init(key):
            return Chains(Position(jax.random.normal(key, (num_chains, target.dim))), jnp.asarray(0))

        def step(key, state):
            new = jax.random.normal(key, state.chains.position.shape)
            move = state.count % self.stay == 0
            position = jnp.where(move, new, state.chains.position)
            return Chains(Position(position), state.count + 1), {"divergent": jnp.asarray(0.0)}

        return Algorithm(init, step, lambda key, state, n: state.chains.position)


@pytest.mark.parametrize("stay", [1, 10])
def test_effective_draws_are_counted(stay):
    """Draws held for ten steps are worth a tenth; ArviZ's estimate of that is within a third."""
    chains = Chain(stay)(target(), num_chains=4, num_warmup=20)
    found = run_chains(jax.random.split(KEY), chains, "flat", budget=60.0, sweeps=250, enough=2_000)
    assert found["nuts_ess"] >= 2_000
    assert found["nuts_draws"] / stay / found["nuts_ess"] == pytest.approx(1.0, abs=0.34)
    assert found["nuts_r_hat"] < 1.05
    # A chain that stays ten times as long must draw ten times as long; a smaller budget ends it earlier.
    assert found["nuts_draws"] % (4 * 250) == 0


def test_the_budget_ends_it():
    chains = Chain(10)(target(), num_chains=4, num_warmup=20)
    found = run_chains(jax.random.split(KEY), chains, "flat", budget=1e-9, sweeps=250)
    assert found["nuts_draws"] == 4 * 250


def test_nuts_itself():
    found = pf.break_even(
        KEY, sampler(STORY), target(), num_warmup=50, num_chains=2, budget=20.0, num_draws=2048
    )
    assert found.train_seconds == 40.5
    assert found.seconds_per_draw > 0
    assert found.nuts_r_hat < 1.05
    assert 0.2 < found.nuts_ess / found.nuts_draws < 3.0


def test_units_are_those_of_the_draws():
    frame, seconds = units_and_pace(KEY, Sampler(Normal(2), mlp(KEY, 2, 2, width=2, depth=1, skip=True, zero_last=True),
        Frame(jnp.asarray([5.0, -900.0]), jnp.asarray([0.01, 30.0]), jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 100_000)  # fmt: skip
    np.testing.assert_allclose(frame.centre, [5.0, -900.0], atol=1.0)
    np.testing.assert_allclose(frame.scale, [0.01, 30.0], rtol=0.02)
    assert seconds > 0


BAD = {
    "not a sampler": (lambda: (3, target()), TypeError, "`sampler` must be a Sampler"),
    "not a target": (lambda: (sampler(STORY), 3), TypeError, "`target` must be a Target; got int"),
    "other size": (lambda: (sampler(STORY), pf.Target.from_log_density(jnp.sum, dim=3)), ValueError, "2 coordinates; it has 3"),
    "other target": (lambda: (sampler(STORY), target("other")), ValueError, "trained on, 'flat'; got 'other'"),
    "no story": (lambda: (sampler({}), target()), ValueError, "Give `train_seconds`"),
    "odd story": (lambda: (sampler({"phases": [{"seconds": "x"}]}), target()), ValueError, "Give `train_seconds`"),
    "odd phases": (lambda: (sampler({"phases": 3}), target()), ValueError, "Give `train_seconds`"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, unhooked):
    build, error, words = BAD[name]
    with pytest.raises(error, match=words):
        pf.break_even(KEY, *build())


def test_bad_numbers(unhooked):
    for options in (
        {"budget": -1.0},
        {"budget": "x"},
        {"train_seconds": 0},
        {"num_chains": 1},
        {"num_warmup": 0},
    ):
        with pytest.raises((ValueError, TypeError), match=f"`{next(iter(options))}` must be"):
            pf.break_even(KEY, sampler(STORY), target(), **options)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"`arviz`.*pip install 'pushforward\[draws\]'"):
        pf.break_even(KEY, sampler(STORY), target())
