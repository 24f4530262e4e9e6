"""The paper's Algorithm 1: fit the score of the sampler's own draws, then move the sampler; repeat."""

from typing import Any, NamedTuple

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
from pushforward.training.pace import in_tiles, over_devices


class State(NamedTuple):
    """All that the next step needs."""

    network: Any
    score_net: Any
    score_average: Any
    """The exponential average of the score net: what the objective sees."""
    opt: optax.OptState
    score_opt: optax.OptState
    average: Any
    """The exponential average of the network's parameters, before its correction for the start."""
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
    tempering: Any = eqx.field(static=True, default=None)
    """A function of progress giving the inverse temperature, or `None`."""
    tiles: int = eqx.field(static=True, default=1)
    """How many pieces a batch is worked through in: more when memory is short."""
    mesh: Mesh | None = eqx.field(static=True, default=None)
    """The devices that share a batch; `None` for one."""


def alternating(parts: Parts) -> Algorithm:
    """Make the training of a network an `Algorithm`: `score_steps` score steps for each sampler step.

    A step whose gradients are not finite changes nothing and is reported as `skipped`.
    """
    return Algorithm(
        init=eqx.Partial(_init, parts),
        step=eqx.Partial(_step, parts),
        sample=eqx.Partial(_sample, parts),
    )


def averaged(parts: Parts, state: State) -> Any:
    """Return the exponential average of the network over training, corrected for its start at zero."""
    if parts.ema == 0.0:
        return state.network
    correction = 1.0 - parts.ema ** jnp.maximum(state.step, 1)
    arrays, static = eqx.partition(state.network, eqx.is_inexact_array)
    mean = jax.tree.map(lambda a: a / correction, state.average)
    # Before the first step there is nothing to average.
    mean = jax.tree.map(lambda m, now: jnp.where(state.step > 0, m, now), mean, arrays)
    return eqx.combine(mean, static)


def _init(parts: Parts, key: Key[Array, ""]) -> State:
    del key
    arrays = eqx.filter(parts.network, eqx.is_inexact_array)
    score_arrays = eqx.filter(parts.score_net, eqx.is_inexact_array)
    return State(
        network=parts.network,
        score_net=parts.score_net,
        score_average=score_arrays,
        opt=parts.optimiser.init(arrays),
        score_opt=parts.score_optimiser.init(score_arrays),
        average=jax.tree.map(jnp.zeros_like, arrays),
        step=jnp.asarray(0),
    )


def _step(parts: Parts, key: Key[Array, ""], state: State) -> tuple[State, dict[str, Any]]:
    key_score, key_latent, key_objective = jax.random.split(key, 3)
    progress = state.step / parts.num_steps
    target = parts.target
    if parts.tempering is not None:
        from pushforward.targets import Gaussian, Tempered

        # In the frame, the easy end of the path is a standard normal.
        target = Tempered(
            target, parts.tempering(progress), Gaussian(np.zeros(target.dim), np.eye(target.dim))
        )

    # What looks at the target must see the one that the objective sees.
    matching = parts.matching.at(target) if hasattr(parts.matching, "at") else parts.matching
    score_net, score_average, score_opt, score_loss, score_ok = _fit_score(parts, matching, key_score, state)

    def gradient(z, key):
        if hasattr(matching, "fit"):
            score = matching.fit(jax.lax.stop_gradient(push(state.network, z)))
        else:
            # Averaged over its recent steps: the noise of the score net is what limits the sampler.
            score = eqx.combine(score_average, score_net)

        @eqx.filter_value_and_grad
        def loss(network):
            view = View(target=target, score=score, latent=parts.latent, progress=progress)
            return parts.objective.surrogate(key, network, z, view)

        return loss(state.network)

    z = over_devices(parts.latent.sample(key_latent, parts.batch_size), parts.mesh)
    value, grads = in_tiles(gradient, z, key_objective, parts.tiles)
    # A target can be not a number and yet flat: then the gradients look well and the value tells.
    network, opt, ok = _update(parts.optimiser, state.network, grads, state.opt, jnp.isfinite(value))
    arrays = eqx.filter(network, eqx.is_inexact_array)
    average = jax.tree.map(lambda a, now: parts.ema * a + (1.0 - parts.ema) * now, state.average, arrays)
    new = State(network, score_net, score_average, opt, score_opt, average, state.step + 1)
    info = {
        "objective": value,
        "gradient_norm": optax.tree.norm(grads),
        "skipped": 1.0 - (ok & score_ok).astype(float),
    }
    return new, info if score_loss is None else info | {"score_loss": score_loss}


def _fit_score(
    parts: Parts, matching: Any, key: Key[Array, ""], state: State
) -> tuple[Any, Any, optax.OptState, Float[Array, ""] | None, Bool[Array, ""]]:
    """Take the score steps, each on fresh draws of the frozen sampler."""
    if parts.score_net is None or parts.score_steps == 0:
        return state.score_net, state.score_average, state.score_opt, None, jnp.ones((), bool)
    arrays, static = eqx.partition(state.score_net, eqx.is_inexact_array)

    def body(carry, key_one):
        score_arrays, average, opt = carry
        key_latent, key_loss = jax.random.split(key_one)

        def gradient(z, key):
            x = push(state.network, z)

            @eqx.filter_value_and_grad
            def loss(score_net):
                return matching.loss(score_net, jax.lax.stop_gradient(x), key)

            return loss(eqx.combine(score_arrays, static))

        z = over_devices(parts.latent.sample(key_latent, parts.score_batch_size), parts.mesh)
        value, grads = in_tiles(gradient, z, key_loss, parts.tiles)
        score_arrays, opt, ok = _update(parts.score_optimiser, score_arrays, grads, opt, jnp.isfinite(value))
        average = jax.tree.map(
            lambda a, now: parts.score_ema * a + (1.0 - parts.score_ema) * now, average, score_arrays
        )
        return (score_arrays, average, opt), (value, ok)

    keys = jax.random.split(key, parts.score_steps)
    start = (arrays, state.score_average, state.score_opt)
    (arrays, average, opt), (values, oks) = jax.lax.scan(body, start, keys)
    return eqx.combine(arrays, static), average, opt, values[-1], jnp.all(oks)


def _update(
    optimiser: optax.GradientTransformation, module: Any, grads: Any, opt: optax.OptState, ok: Bool[Array, ""]
) -> tuple[Any, optax.OptState, Bool[Array, ""]]:
    """Apply an optimiser step, or nothing at all where it is not `ok` or any gradient is not finite."""
    ok &= jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
    updates, new_opt = optimiser.update(grads, opt, eqx.filter(module, eqx.is_inexact_array))
    new = eqx.apply_updates(module, updates)

    def keep(a, b):
        return jnp.where(ok, a, b) if eqx.is_array(a) else a

    return jax.tree.map(keep, new, module), jax.tree.map(keep, new_opt, opt), ok


def _sample(parts: Parts, key: Key[Array, ""], state: State, num_samples: int) -> Float[Array, "n dim"]:
    return push(averaged(parts, state), parts.latent.sample(key, num_samples))
