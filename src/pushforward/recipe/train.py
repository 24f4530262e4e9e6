"""Stage `train`: the network, by any objective, in the annealed frame."""

import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.frame import InFrame
from pushforward.host import generator, into, on_device
from pushforward.latents import standard
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.judge import weighed
from pushforward.recipe.law import frames_of
from pushforward.recipe.necks import neck_maps
from pushforward.recipe.parts import build_parts
from pushforward.recipe.settings import Settings
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.training.alternating import Parts, alternating, averaged
from pushforward.training.loop import LoopResult
from pushforward.training.outcome import Outcome
from pushforward.weights import usual


def applies(state: State, recipe: Recipe) -> bool:
    """Unless the law that particles or proposals came to is the target already, by its own weights."""
    return not (recipe.training.judged and state.efficiency > recipe.judge.learnt)


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Train the network, from the annealed particles' map or from nothing."""
    key_parts, key_train, key_trial, key_begin = jax.random.split(key, 4)
    began, notes, before = time.monotonic(), {}, state
    if recipe.training.judged and state.one_normal:
        state = simplest(generator(key_begin), state, recipe)
    parts = parts_of(key_parts, state, recipe.training)
    if clock.plans:
        algorithm = alternating(parts)
        steps = clock.steps(key_trial, algorithm, algorithm.init(key_trial), parts.num_steps)
        if not steps:
            # The law found so far stands, or the network as it begins.
            begins = {} if state.has_sampler else {"latent": parts.latent, "network": parts.network}
            yield state.replace(outcome=Outcome.OUT_OF_TIME, notes={"planned_steps": 0}, **begins)
            return
        # The schedule is part of the program.
        parts = parts_of(key_parts, state, recipe.training.replace(num_steps=steps))
        notes["planned_steps"] = steps
    parts, result = clock.train(key_train, state.replace(parts=parts), recipe)
    if result.at is not None and result.at.seconds > time.monotonic() - began:
        # An earlier run took some of the steps.
        notes["seconds"] = result.at.seconds
    state = state.replace(before=before, parts=parts, result=result, outcome=result.outcome, why=result.why)
    network, notes = averaged(parts, result.state), notes | in_short(result)
    yield state.replace(latent=parts.latent, network=network, notes=notes)


def simplest(rng: np.random.Generator, state: State, recipe: Recipe) -> State:
    """Return the state at one normal law, in a frame or along necks, where that explains some of the target.

    A map learns more from there than from between the components of a mixture, each of which bends another
    way; and `reweight` puts the marginals of one normal right.
    """
    x, normal = state.outside, standard(state.dim)
    laws = [*(Approximation(frame, normal) for frame in frames_of(x, recipe)), *neck_maps(x, recipe)]
    found = [usual(weighed(rng, state.target, law, recipe), recipe.reweight.parts) for law in laws]
    best = laws[int(np.argmax(found))]
    if not max(found) > recipe.judge.simple:
        return state
    draws = on_device(into(best.frame, x))
    return state.replace(frame=best.frame, latent=normal, network=best.network, draws=draws)


def parts_of(key: Key[Array, ""], state: State, settings: Settings) -> Parts:
    """Return all that training needs, from what stages before have found."""
    inside = InFrame(state.target, state.coordinates)
    return build_parts(key, inside, settings, mixture=state.latent, draws=state.draws, network=state.network)


def in_short(result: LoopResult) -> dict[str, Any]:
    """Return what is told of a training."""
    skipped = sum(row["skipped"] for row in result.rows) / max(len(result.rows), 1)
    steps = result.rows[-1]["step"] if result.rows else 0
    return {"steps": steps, "skipped": skipped, "outcome": result.outcome.name}
