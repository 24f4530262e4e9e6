"""Stage `necks`: particles seen through a map that takes along the widths which go by a neck."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from pushforward.latents import NormalMixture
from pushforward.mcmc.annealed import anneal, efficiency_of
from pushforward.recipe.judge import good_for_maps
from pushforward.recipe.law import widened
from pushforward.recipe.neck_map import NeckMap, filled_up, seen_by_necks
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, standard
from pushforward.recipe.table import Recipe


def applies(state: State, recipe: Recipe) -> bool:
    """Where annealing has seen necks."""
    return state.necks is not None and not state.good and not state.cut


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Go on where moves in a frame are slow, along necks; yields after every round.

    Each round is followed by a look at its own draws: if a map of their necks is the target, that is the
    last, and it needs no further particles.
    """
    normal, numbers = standard(state.dim), recipe.necks
    plan = recipe.annealing.plan(state.dim)
    seen: NeckMap = state.necks
    for i in range(numbers.rounds):
        key_anneal, key_fit, key_judge, key_fill = jax.random.split(jax.random.fold_in(key, i), 4)
        clock.observe(f"tempered particles seen along necks, round {i + 1}")
        start = _reaching(seen.necks, state.dim, recipe)
        result = anneal(key_anneal, seen.pulled_back(state.target), start, plan)
        x = jax.vmap(lambda z, by=seen: by.frame(by.network(z)))(result.draws)
        seen = seen_by_necks(key_fit, state.target, x, recipe) or seen
        found = float(efficiency_of(key_judge, seen.pulled_back(state.target), normal))
        good = found > numbers.good
        to_maps = i + 1 == numbers.rounds and found <= good_for_maps(state.dim, recipe.maps)
        state = state.replace(
            frame=seen.frame,
            latent=normal,
            network=filled_up(key_fill, seen.network, width=recipe.training.width),
            draws=jax.vmap(seen.frame.inverse)(x),
            log_z=result.log_z,
            rounds=(*state.rounds, {**result.row(), "efficiency": found}),
            good=good or found > good_for_maps(state.dim, recipe.maps),
            next_cost=recipe.maps.cost if to_maps else numbers.cost_again,
        )
        yield state
        if good:
            return


def _reaching(necks: tuple[int, ...], dim: int, recipe: Recipe) -> NormalMixture:
    """Return the start of a round: a normal, wider, and much wider along the necks.

    What was learnt of the widths holds beyond where particles have been; so they get there at once.
    """
    law = widened(standard(dim), recipe.annealing)
    assert isinstance(law, NormalMixture)
    longer = law.choleskys.at[:, jnp.asarray(necks)].multiply(recipe.necks.reach)
    return NormalMixture(law.weights, law.means, longer)
