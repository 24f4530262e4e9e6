"""`fit` with someone watching: the same steps from the same key, with a look at evenly spaced checkpoints."""

import time
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from pushforward.training.lesson import Lesson
from pushforward.training.phases import Work

from pushforward.base import ExactTarget
from pushforward.metrics import ksd_imq_v, sliced_w2
from pushforward.sampler import Sampler
from pushforward.targets import get
from pushforward.training import Settings as Recipe
from pushforward.training import preset
from pushforward.training.alternating import State, averaged
from pushforward.training.loop import Row
from reproduce.studies.fitting import at_its_end
from reproduce.studies.two_d.settings import Settings


class Watched(NamedTuple):
    """A trained sampler, what it cost without the watching, and what was seen on the way."""

    sampler: Sampler
    seconds: float
    curve: Float[np.ndarray, "checkpoints 4"]
    """Columns: seconds, mean KSD over the repeats, its spread, sliced W2."""


NO_LOOK: Row = dict.fromkeys(("ksd", "spread", "w2"), float("nan")) | {"this_look": 0.0}


@lru_cache(maxsize=1)
def lesson_of(target: str, seed: int) -> tuple[Lesson, float]:
    """Return what the teacher of `fit(key(seed), target)` learns, and in how many seconds.

    The last lesson is kept: it depends on the target and the key alone, so that all methods which ask for
    a teacher would learn the same one again.
    """
    started = time.monotonic()
    work = Work(jax.random.key(seed), get(target), preset("default"), progress=False)
    work.teach()
    assert work.lesson is not None
    return work.lesson, time.monotonic() - started


def watch(name: str, seed: int, recipe: Recipe, settings: Settings, *, look: bool = True) -> Watched:
    """Train as `fit(key(seed), target)` does and judge `settings.checkpoints` evenly spaced checkpoints.

    What `fit` does after training, the repair of mode weights that follows exact KL, is left out.
    """
    target = get(name)
    assert isinstance(target, ExactTarget)
    work = Work(jax.random.key(seed), target, recipe, progress=False)
    teacher_seconds, looking = 0.0, 0.0
    if recipe.frame == "teacher":
        work.lesson, teacher_seconds = lesson_of(name, seed)
    work.build()

    def sampler_at(state: State) -> Sampler:
        assert work.parts is not None
        return Sampler(work.parts.latent, averaged(work.parts, state), work.frame)

    def monitor(state: State) -> Row:
        nonlocal looking
        started = time.monotonic()
        row = _look(work.key_check, sampler_at(state), target, settings) if look else NO_LOOK
        looking += time.monotonic() - started
        return row | {"looking": looking}

    work.train(monitor, settings.checkpoints)
    result = at_its_end(work.hand_back()[2])
    curve = np.array([
        # A row's clock is read before it is looked at: what counts is the looking of the rows before.
        (teacher_seconds + r["seconds"] - (r["looking"] - r["this_look"]), r["ksd"], r["spread"], r["w2"])
        for r in result.rows
    ])  # fmt: skip
    return Watched(sampler_at(result.state), float(curve[-1, 0]), curve)


def _look(key: Key[Array, ""], sampler: Sampler, target: ExactTarget, settings: Settings) -> Row:
    started = time.monotonic()
    key_ksd, key_w2 = jax.random.split(key)
    ksds = np.asarray(
        _ksds(sampler, target, jax.random.split(key_ksd, settings.checkpoint_repeats), settings.ksd_n)
    )
    w2 = float(_w2(sampler, target, key_w2, settings.pair_n))
    row = {"ksd": float(ksds.mean()), "spread": float(ksds.std(ddof=1)), "w2": w2}
    return row | {"this_look": time.monotonic() - started}


@eqx.filter_jit
def _ksds(
    sampler: Sampler, target: ExactTarget, keys: Key[Array, " repeats"], n: int
) -> Float[Array, " repeats"]:
    def one(key: Key[Array, ""]) -> Float[Array, ""]:
        return ksd_imq_v(jax.vmap(sampler)(sampler.latent.sample(key, n)), target)

    return jax.lax.map(one, keys)


@eqx.filter_jit
def _w2(sampler: Sampler, target: ExactTarget, key: Key[Array, ""], n: int) -> Float[Array, ""]:
    key_draws, key_exact, key_directions = jax.random.split(key, 3)
    draws = jax.vmap(sampler)(sampler.latent.sample(key_draws, n))
    finite = jnp.all(jnp.isfinite(draws))
    return jnp.where(finite, sliced_w2(key_directions, draws, target.sample(key_exact, n)), jnp.nan)
