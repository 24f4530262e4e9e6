"""The paper's Algorithm 1: fit the score of the sampler's own draws, then move the sampler; repeat."""

from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, Key

from pushforward.base import Algorithm, Target
from pushforward.latents import Latent
from pushforward.objectives import Objective, View
from pushforward.objectives.base import push
from pushforward.training.pace import Batch

Held: TypeAlias = tuple[Any, optax.OptState, Any]  # a module, its optimiser's state, and its average


class State(NamedTuple):
    """All that the next step needs."""

    network: Any
    score_net: Any
    score_average: Any  # its exponential average: what the objective sees
    opt: optax.OptState
    score_opt: optax.OptState
    average: Any  # the exponential average of the network's parameters, before its correction for the start
    step: Int[Array, ""]


class Parts(eqx.Module):
    """What stays fixed during training: all of it arguments of the compiled step, none of it constants."""

    target: Target
    latent: Latent
    objective: Objective
    matching: Any
    network: Any
    score_net: Any
    optimiser: optax.GradientTransformation = eqx.field(static=True)
    score_optimiser: optax.GradientTransformation = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)
    score_batch_size: int = eqx.field(static=True)
    score_steps: int = eqx.field(static=True)
    num_steps: int = eqx.field(static=True)
    ema: float = eqx.field(static=True)
    score_ema: float = eqx.field(static=True)
    tempering: Any = eqx.field(static=True, default=None)  # progress to inverse temperature, or `None`
    tiles: int = eqx.field(static=True, default=1)  # pieces of a batch: more when memory is short
    mesh: Mesh | None = eqx.field(static=True, default=None)  # the devices that share a batch


def alternating(parts: Parts) -> Algorithm:
    """Make the training of a network an `Algorithm`: `score_steps` score steps for each sampler step.

    A step whose gradients are not finite changes nothing and is reported as `skipped`.
    """
    return Algorithm(eqx.Partial(_init, parts), eqx.Partial(_step, parts), eqx.Partial(_sample, parts))


def averaged(parts: Parts, state: State) -> Any:
    """Return the exponential average of the network over training, corrected for its start at zero."""
    return state.network if parts.ema == 0.0 else _corrected(parts.ema, state)


@eqx.filter_jit
def _corrected(ema: float, state: State) -> Any:
    begun, correction = state.step > 0, 1.0 - ema ** jnp.maximum(state.step, 1)
    arrays, static = eqx.partition(state.network, eqx.is_inexact_array)
    # Before the first step there is nothing to average.
    mean = jax.tree.map(lambda a, now: jnp.where(begun, a / correction, now), state.average, arrays)
    return eqx.combine(mean, static)


def _init(parts: Parts, key: Key[Array, ""]) -> State:
    arrays = eqx.filter(parts.network, eqx.is_inexact_array)
    score_arrays = eqx.filter(parts.score_net, eqx.is_inexact_array)
    opt, score_opt = parts.optimiser.init(arrays), parts.score_optimiser.init(score_arrays)
    average = jax.tree.map(jnp.zeros_like, arrays)
    return State(parts.network, parts.score_net, score_arrays, opt, score_opt, average, jnp.asarray(0))


def _step(parts: Parts, key: Key[Array, ""], state: State) -> tuple[State, dict[str, Any]]:
    key_score, *keys = jax.random.split(key, 3)
    progress = state.step / parts.num_steps
    target = parts.target
    if parts.tempering is not None:
        from pushforward.targets import Gaussian, Tempered

        # In the frame, the easy end of the path is a standard normal.
        easy = Gaussian(np.zeros(target.dim), np.eye(target.dim))
        target = Tempered(target, parts.tempering(progress), easy)

    # What looks at the target must see the one that the objective sees.
    matching = parts.matching.at(target) if hasattr(parts.matching, "at") else parts.matching
    held, score_ok, info = _fit_score(parts, matching, key_score, state)
    score_net, score_opt, score_average = held

    def gradient(z, key):
        if hasattr(matching, "fit"):
            score = matching.fit(jax.lax.stop_gradient(push(state.network, z)))
        else:
            # Averaged over its recent steps: the noise of the score net is what limits the sampler.
            score = eqx.combine(score_average, score_net)
        view = View(target=target, score=score, latent=parts.latent, progress=progress)
        return eqx.filter_value_and_grad(lambda g: parts.objective.surrogate(key, g, z, view))(state.network)

    rows = parts.objective.wants.rows and not hasattr(matching, "fit")
    held = state.network, state.opt, state.average
    how = parts.optimiser, parts.ema, parts.batch_size, rows
    (network, opt, average), value, grads, ok = _move(parts, how, held, gradient, keys)
    skipped = 1.0 - (ok & score_ok).astype(float)
    info |= {"objective": value, "gradient_norm": optax.tree.norm(grads), "skipped": skipped}
    return State(network, score_net, score_average, opt, score_opt, average, state.step + 1), info


def _fit_score(
    parts: Parts, matching: Any, key: Key[Array, ""], state: State
) -> tuple[Held, Bool[Array, ""], dict[str, Any]]:
    """Take the score steps, each on fresh draws of the frozen sampler."""
    if parts.score_net is None or parts.score_steps == 0:
        return (state.score_net, state.score_opt, state.score_average), jnp.ones((), bool), {}
    arrays, static = eqx.partition(state.score_net, eqx.is_inexact_array)

    def body(held, key_one):
        def gradient(z, key):
            x = jax.lax.stop_gradient(push(state.network, z))
            score_net = eqx.combine(held[0], static)
            return eqx.filter_value_and_grad(lambda score: matching.loss(score, x, key))(score_net)

        held, value, _, ok = _move(parts, how, held, gradient, jax.random.split(key_one))
        return held, (value, ok)

    rows = getattr(matching, "rows", False)
    how = (parts.score_optimiser, parts.score_ema, parts.score_batch_size, rows)
    start = (arrays, state.score_opt, state.score_average)
    keys = jax.random.split(key, parts.score_steps)
    (arrays, opt, average), (values, oks) = jax.lax.scan(body, start, keys)
    return (eqx.combine(arrays, static), opt, average), jnp.all(oks), {"score_loss": values[-1]}


def _move(
    parts: Parts, how: tuple[Any, float, int, bool], held: Held, gradient: Any, keys: Any
) -> tuple[Held, Float[Array, ""], Any, Bool[Array, ""]]:
    """Take an optimiser step on a fresh batch, or none at all where anything is not finite.

    `how`: the optimiser, the decay of the average, the size of the batch, and whether its rows count alone.
    """
    (module, opt, average), (key_latent, key_loss), (optimiser, decay, batch_size, rows) = held, keys, how
    z = parts.latent.sample(key_latent, batch_size)
    value, grads = Batch(parts.tiles, parts.mesh, rows).gradient(gradient, z, key_loss)
    # A target can be not a number and yet flat: then the gradients look well and the value tells.
    ok = jnp.all(jnp.stack([jnp.all(jnp.isfinite(each)) for each in jax.tree.leaves((value, grads))]))
    updates, new_opt = optimiser.update(grads, opt, eqx.filter(module, eqx.is_inexact_array))

    def keep(new, old):
        return jnp.where(ok, new, old) if eqx.is_array(new) else new

    module, opt = jax.tree.map(keep, (eqx.apply_updates(module, updates), new_opt), (module, opt))
    arrays = eqx.filter(module, eqx.is_inexact_array)
    average = jax.tree.map(lambda a, now: decay * a + (1.0 - decay) * now, average, arrays)
    return (module, opt, average), value, grads, ok


def _sample(parts: Parts, key: Key[Array, ""], state: State, num_samples: int) -> Float[Array, "n dim"]:
    return push(averaged(parts, state), parts.latent.sample(key, num_samples))
