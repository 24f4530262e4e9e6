"""Stage `maps`: particles seen through a map that is fitted to those before."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from pushforward.frame import InFrame
from pushforward.latents import Mixture
from pushforward.mcmc.annealed import anneal, efficiency_of
from pushforward.networks import Coupled, coupled
from pushforward.recipe.judge import good_for_maps
from pushforward.recipe.law import frame_from_draws, mixture_of, split, widened
from pushforward.recipe.pulled_back import PulledBack, fit_coupled, log_likelihood
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, standard
from pushforward.recipe.table import Recipe


def applies(state: State, recipe: Recipe) -> bool:
    """Where particles can be seen through maps, and what there is is not good enough without."""
    return state.draws is not None and not state.good and not state.cut


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Go on where moves in the frame do not reach, through maps; yields after every round."""
    numbers = recipe.maps
    plan = recipe.annealing.plan(state.dim, recipe.dims)
    for i in range(numbers.rounds if state.dim <= recipe.dims.some else numbers.rounds_more):
        key_choose, key_map, key_anneal, key_judge = jax.random.split(jax.random.fold_in(key, i), 4)
        clock.observe(f"fitting a map, round {i + 1}")
        steps = numbers.steps_next
        if state.network is None:
            state, steps = _likeliest(key_choose, state, recipe), numbers.steps_first
        network = _fitted(key_map, state, recipe, steps)
        clock.observe(f"tempered particles seen through the map, round {i + 1}")
        through = PulledBack(InFrame(state.target, state.coordinates), network)
        result = anneal(key_anneal, through, widened(state.mixture, recipe.annealing), plan)
        found = float(efficiency_of(key_judge, through, state.mixture))
        state = state.replace(
            network=network,
            draws=jax.vmap(network)(result.draws),
            log_z=result.log_z,
            rounds=(*state.rounds, {**result.row(), "efficiency": found}),
            good=found > good_for_maps(state.dim, numbers),
            next_cost=1.0,
        )
        yield state
        if state.good:
            return


def _fitted(key: Key[Array, ""], state: State, recipe: Recipe, steps: int) -> Coupled:
    """Return the likeliest map of the state's draws, from its own on or from the identity."""
    begin = state.network
    assert state.draws is not None
    if begin is None:
        begin = eqx.Partial(coupled, dim=state.dim, **recipe.maps.sizes(recipe.training))
    return fit_coupled(key, state.draws, state.mixture, steps, recipe.maps, begin)


def _likeliest(key: Key[Array, ""], state: State, recipe: Recipe) -> State:
    """Return the state with the frame, bent or straight, and the latents, one normal or many, for a map.

    A bend is right where a coordinate has heavy tails of its own, and in the way where another coordinate
    makes them. Which it is, short fits say, by the likelihood of draws they have not seen.
    """
    assert state.draws is not None
    key_fit, key_map = jax.random.split(key)
    populations = recipe.annealing.num_snapshots
    frame, draws = state.coordinates, state.draws
    x = jax.vmap(frame)(draws)
    held_out = split(x, populations)[1]
    frames = [frame]
    if bool(jnp.any(frame.bend > 0)):
        frames.append(frame_from_draws(x, bend=False, law=recipe.law, correlated=populations))
    best, found = state, -np.inf
    for number, each in enumerate(frames):
        key_frame = jax.random.fold_in(key_map, number)
        u = jax.vmap(each.inverse)(x)
        latents: list[Mixture] = [standard(state.dim)]
        size = state.mixture.weights.shape[-1]
        if size > 1:
            same = each is frame
            latents.append(state.mixture if same else mixture_of(key_fit, u, size, u[:0], recipe))
        for which, latent in enumerate(latents):
            trial = state.replace(latent=latent, draws=split(u, populations)[0])
            network = _fitted(
                jax.random.fold_in(key_frame, which), trial, recipe, recipe.maps.steps_to_choose
            )
            value = float(log_likelihood(network, latent, each, held_out))
            if value > found:
                best, found = state.replace(frame=each, latent=latent, draws=u), value
    return best
