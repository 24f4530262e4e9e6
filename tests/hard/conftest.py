"""The study with cheap stand-ins for what others test: a fit, its teacher, NUTS and the flow."""

import json
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest

from pushforward.base import Algorithm
from pushforward.frame import Frame
from pushforward.latents import NormalMixture
from pushforward.mcmc import nuts
from pushforward.networks import modulated
from pushforward.sampler import Sampler
from pushforward.training import preset
from pushforward.training.lesson import Lesson
from reproduce.rivals import flow
from reproduce.studies import hard
from reproduce.studies.hard import work

METHODS = ("default", "smc", "mixture", "nuts", "flow", "steps")
ABOUT = {
    "outcome": "FINISHED",
    "phases": [{"phase": "teacher", "seconds": 0.1}],
    "metrics": {"efficiency": 0.5},
}


def stand_in(target):
    """A normal with the target's moments, as a sampler whose map is the identity."""
    x = target.sample(jax.random.key(9), 2000)
    dim = target.dim
    zero, one = jnp.zeros(dim), jnp.ones(dim)
    frame = Frame(centre=x.mean(0), scale=x.std(0), bend=zero, shift=zero, matrix=jnp.eye(dim))
    latent = NormalMixture(jnp.ones(1), zero[None], jnp.diag(one)[None])
    return Sampler(latent, modulated(jax.random.key(0), dim, width=4, depth=1), frame, json.dumps(ABOUT))


def fake_fit(key, target, *, steps, budget=None):
    settings = preset("default", width=4, depth=1, batch_size=16, num_steps=steps)
    return SimpleNamespace(sampler=stand_in(target), seconds=0.2, settings=settings)


def fake_lesson(name, seed, budget, *, plans):
    target = hard.cases.case(name).build()
    made = stand_in(target)
    draws = jax.vmap(made.frame.inverse)(target.sample(jax.random.key(seed), 512))
    return Lesson(made.frame, made.latent, draws, 0.25, []), 0.1


class Walk(NamedTuple):
    """A population that jumps at random: as cheap as a chain can be."""

    position: Any


class Walks(NamedTuple):
    """As NUTS keeps its chains."""

    chains: Walk


def fake_nuts(target, *, num_chains, num_warmup, initial_scale):
    def init(key):
        return Walks(Walk(initial_scale * jax.random.normal(key, (num_chains, target.dim))))

    return Algorithm(init, lambda key, state: (init(key), {}), lambda key, state, n: state.chains.position)


def fake_flow(target, *, batch_size, learning_rate, width):
    def sample(key, state, n):
        return state * jax.random.normal(key, (n, target.dim))

    return Algorithm(lambda key: jnp.ones(()), lambda key, state: (state, {"loss": state}), sample)


@pytest.fixture(scope="session")
def hard_folder(tmp_path_factory):
    """A few rows of the smoke preset, run once."""
    folder = tmp_path_factory.mktemp("hard")
    settings = hard.PRESETS["smoke"].replace(
        targets=("gmm40", "random_05"), methods=METHODS, step_dims=(2,), most_rival_seconds=0.2
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "fit_to_the_end", fake_fit)
        patch.setattr(work, "_lesson_of", fake_lesson)
        patch.setattr(nuts, "algorithm", fake_nuts)
        patch.setattr(flow, "algorithm", fake_flow)
        hard.run(settings, folder, command="pushforward study hard --preset smoke")
    return folder, settings
