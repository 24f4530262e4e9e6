"""Stage `train`: the network, by any objective, in the annealed frame."""

import time
from collections.abc import Iterator
from typing import Any

import jax
from jaxtyping import Array, Key

from pushforward.frame import InFrame
from pushforward.recipe.judge import nothing_to_learn
from pushforward.recipe.parts import build_parts
from pushforward.recipe.settings import Settings
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.training.alternating import Parts, alternating, averaged
from pushforward.training.loop import LoopResult
from pushforward.training.outcome import Outcome


def applies(state: State, recipe: Recipe) -> bool:
    """Unless the law that particles or proposals came to is the target already."""
    return not nothing_to_learn(state, recipe)


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Train the network, from the annealed particles' map or from nothing."""
    key_parts, key_train, key_trial = jax.random.split(key, 3)
    began, notes = time.monotonic(), {}
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
    yield state.replace(
        before=state,
        parts=parts,
        result=result,
        latent=parts.latent,
        network=averaged(parts, result.state),
        outcome=result.outcome,
        why=result.why,
        notes=notes | in_short(result),
    )


def parts_of(key: Key[Array, ""], state: State, settings: Settings) -> Parts:
    """Return all that training needs, from what stages before have found."""
    inside = InFrame(state.target, state.coordinates)
    return build_parts(key, inside, settings, mixture=state.latent, draws=state.draws, network=state.start)


def in_short(result: LoopResult) -> dict[str, Any]:
    """Return what is told of a training."""
    skipped = sum(row["skipped"] for row in result.rows) / max(len(result.rows), 1)
    steps = result.rows[-1]["step"] if result.rows else 0
    return {"steps": steps, "skipped": skipped, "outcome": result.outcome.name}
