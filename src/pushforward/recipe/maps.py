"""Stage `maps`: particles seen through a map that is fitted to those before.

Particles that move badly in the target's coordinates, along a neck or around a bend, move well in the latents
of a map that is nearly right. So a map fitted to draws gives better draws, and these a better map.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from pushforward.frame import Frame
from pushforward.host import generator, into, on_device
from pushforward.latents import Latent, Mixture, standard
from pushforward.mcmc.annealed import anneal
from pushforward.networks import Coupled, coupled
from pushforward.networks.invertible import log_density
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.judge import good_for_maps, weighed
from pushforward.recipe.law import frame_from_draws, mixture_of, populations, widened
from pushforward.recipe.necks import filled_up
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, known
from pushforward.recipe.table import Maps, Recipe
from pushforward.weights import effective


def applies(state: State, recipe: Recipe) -> bool:
    """Where particles can be seen through maps, and what there is is not good enough without."""
    return state.draws is not None and not state.good and not state.cut


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Go on where moves in the frame do not reach, through maps; yields after every round."""
    numbers = recipe.maps
    plan = recipe.annealing.plan(state.dim)
    for i in range(numbers.rounds if state.dim <= recipe.dims.some else numbers.rounds_more):
        key_choose, key_map, key_anneal, key_judge = jax.random.split(jax.random.fold_in(key, i), 4)
        clock.observe(f"fitting a map, round {i + 1}")
        steps = numbers.steps_next
        if state.network is None:
            state, steps = _likeliest(key_choose, state, recipe), numbers.steps_first
        network = _fitted(key_map, state, recipe, steps)
        clock.observe(f"tempered particles seen through the map, round {i + 1}")
        law = Approximation(state.coordinates, state.mixture, network)
        result = anneal(key_anneal, law.inside(state.target), widened(law, recipe), plan)
        found = effective(weighed(generator(key_judge), state.target, law, recipe))
        draws, good = jax.vmap(network)(result.draws), found > good_for_maps(state.dim, numbers)
        rounds = (*state.rounds, {**result.row(), "efficiency": found})
        state = state.replace(network=network, draws=draws, log_z=result.log_z, rounds=rounds, good=good)
        state = state.replace(one_normal=False, next_cost=1.0)
        yield state
        if state.good:
            return


def _fitted(key: Key[Array, ""], state: State, recipe: Recipe, steps: int) -> Coupled:
    """Return the likeliest map of the state's draws, from its own on or from the identity."""
    key_begin, key_fit = jax.random.split(key)
    begin = coupled(key_begin, state.dim, **recipe.maps.sizes(recipe.training))
    if state.network is not None:
        begin = filled_up(begin, state.network) or begin
    return fit_coupled(key_fit, known(state.draws), state.mixture, steps, recipe.maps, begin)


def _likeliest(key: Key[Array, ""], state: State, recipe: Recipe) -> State:
    """Return the state with the frame, bent or straight, and the latents, one normal or many, for a map.

    A bend is right where a coordinate has heavy tails of its own, and in the way where another coordinate
    makes them. Which it is, short fits say, by the likelihood of draws they have not seen.
    """
    key_fit, key_map = jax.random.split(key)
    x, part, frames = state.outside, populations(recipe.annealing), [state.coordinates]
    held_out, size = part(x)[1], state.mixture.weights.shape[-1]
    if np.any(np.asarray(state.coordinates.bend) > 0):
        frames.append(
            frame_from_draws(x, bend=False, law=recipe.law, correlated=recipe.annealing.num_snapshots)
        )
    best, found = state, -np.inf
    for number, frame in enumerate(frames):
        key_frame, u = jax.random.fold_in(key_map, number), into(frame, x)
        latents: list[Mixture] = [standard(state.dim)]
        if size > 1:
            latents.append(mixture_of(key_fit, u, size, u[:0], recipe, part) if number else state.mixture)
        for which, latent in enumerate(latents):
            trial = state.replace(latent=latent, draws=on_device(part(u)[0]))
            key_fitted = jax.random.fold_in(key_frame, which)
            network = _fitted(key_fitted, trial, recipe, recipe.maps.steps_to_choose)
            value = float(log_likelihood(network, latent, frame, on_device(held_out)))
            if value > found:
                best, found = state.replace(frame=frame, latent=latent, draws=on_device(u)), value
    return best


@eqx.filter_jit
def log_likelihood(
    network: Coupled, latent: Latent, frame: Frame, draws: Float[Array, "m dim"]
) -> Float[Array, ""]:
    """Return the mean log density, outside of the frame, of `draws` from outside of it."""

    def one(x):
        u = frame.inverse(x)
        return log_density(network, latent, u) - frame.log_det(u)

    return jnp.mean(jax.lax.map(one, draws, batch_size=1024))


@eqx.filter_jit
def fit_coupled(
    key: Key[Array, ""],
    draws: Float[Array, "m dim"],
    latent: Latent,
    num_steps: int,
    numbers: Maps,
    network: Coupled,
) -> Coupled:
    """Return the map whose draws are likeliest to be `draws`, sought from a `network` on."""
    optimiser = optax.chain(
        optax.clip_by_global_norm(numbers.clip),
        optax.adam(optax.cosine_decay_schedule(numbers.learning_rate, num_steps)),
    )

    def loss(network, rows):
        return -jnp.mean(jax.vmap(lambda row: log_density(network, latent, row))(rows))

    def step(carry, key_step):
        network, state = carry
        rows = draws[jax.random.randint(key_step, (numbers.batch_size,), 0, draws.shape[0])]
        slopes = eqx.filter_grad(loss)(network, rows)
        updates, state = optimiser.update(slopes, state)
        return (eqx.apply_updates(network, updates), state), None

    carry = network, optimiser.init(eqx.filter(network, eqx.is_inexact_array))
    (network, _), _ = jax.lax.scan(step, carry, jax.random.split(key, num_steps))
    return network
