"""Stage `residual`: modes that neither walks nor proposals have come upon.

A mode far narrower than the rest draws in next to no walk. But where a law explains the target, the weights
of its draws are all alike, and a draw of far larger weight lies on something that the law does not know. So
very many draws of the law, some of them spread wider, are looked at once; walks begin where weights are
largest; if they end on a peak that holds mass and is not explained, proposals or particles begin again.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.host import densities, generator, sampled, scores_at, squares
from pushforward.operations import operations
from pushforward.recipe import adapt, anneal
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.peaks import Peaks, between, climb_from, joined, tops_of
from pushforward.recipe.stages import Clock
from pushforward.recipe.state import State, known
from pushforward.recipe.table import Recipe, Residual, Search


class Hidden(NamedTuple):
    """Peaks that a law does not explain, and the share of the mass that each holds by its curvature."""

    peaks: Peaks
    masses: Float[np.ndarray, " k"]


def applies(state: State, recipe: Recipe) -> bool:
    """Where a law without a map stands for the target, not looked at yet, and curvature is affordable."""
    fresh = state.has_sampler and "looks" not in state.metrics
    return state.peaks is not None and fresh and state.dim <= recipe.dims.many


def run(key: Key[Array, ""], state: State, recipe: Recipe, clock: Clock) -> Iterator[State]:
    """Look for what the law does not explain; begin again where there is such a mode."""
    for i in range(recipe.residual.rounds):
        clock.observe(f"looking for hidden modes, round {i + 1}")
        key_look, key_again = jax.random.split(jax.random.fold_in(key, i))
        looks = num_looks(state.target, recipe.search)
        peaks = known(state.peaks)
        found = hidden(generator(key_look), state.target, state.law, looks, recipe)
        # By their own deviations, for a known one may be far wider. Of a known peak there is nothing to begin
        # again with; training sees to it that its law is right.
        away = np.zeros(0) if found is None else squares(peaks.points, *found.peaks[:2]).min(axis=0)
        if found is None or not (away > 1.0).any():
            yield state.replace(metrics={**state.metrics, "looks": float(looks)})
            return
        peaks = joined(peaks, found.peaks.rows(np.flatnonzero(away > 1.0)), recipe.search)
        state = state.replace(peaks=peaks, laplace=None, one_normal=False, good=False, rounds=())
        state = state.replace(draws=None, network=None)
        for stage in (adapt, anneal):
            if stage.applies(state, recipe):
                *_, state = [state, *stage.run(key_again, state, recipe, clock)]
        if state.draws is None:
            return
        yield state


def num_looks(target: Target, numbers: Search) -> int:
    """Return how many places are looked at: fewer of a dear target."""
    return int(min(numbers.looks, numbers.look_work / operations(target)))


def hidden(
    rng: np.random.Generator, target: Target, law: Approximation, looks: int, recipe: Recipe
) -> Hidden | None:
    """Return peaks that hold mass and that a law does not explain."""
    numbers, tile = recipe.residual, recipe.search.tile
    kept, log_z = np.zeros((0, target.dim + 3)), 0.0
    for first in range(0, looks, recipe.search.block):
        u = sampled(rng, law.latent, min(recipe.search.block, looks - first))
        half, middle = len(u) // 2, np.median(u, axis=0)
        # The second half of the draws is moved away from the middle.
        u[half:] = middle + between(rng, numbers.wider, (len(u) - half, 1)) * (u[half:] - middle)
        height, own = law.heights(target, u, tile), np.arange(len(u)) < half
        w = height - densities(law.latent, u, tile)
        if first == 0:
            log_z = float(np.median(w[own]))
        # Far out the law's tail may be too thin everywhere: so weights among its own draws, and heights, too.
        w -= log_z
        more = np.column_stack([w, np.where(own, w, -np.inf), height, u])[w > numbers.excess]
        kept = np.concatenate([kept, more])
        chosen = [np.argsort(-kept[:, by])[: numbers.walks // 3] for by in range(3)]
        kept = kept[np.unique(np.concatenate(chosen))]
    if len(kept) == 0:
        return None
    step = numbers.first_step * np.std(law.draws(sampled(rng, law.latent, tile), tile), axis=0)
    starts = law.draws(kept[:, 3:], tile)
    walks = climb_from(target, starts, step, recipe.search.round_steps, recipe.search)
    tops = tops_of(target, walks, recipe.search, recipe.dims)
    if tops is None:
        return None
    u = law.latents(tops.points, tile)
    above = law.heights(target, u, tile) - densities(law.latent, u, tile) - log_z
    mass = tops.log_masses + 0.5 * target.dim * math.log(2.0 * math.pi) - log_z
    # A place on a ridge is no peak: from there a step of Newton's would lead on.
    slopes = np.einsum("kji,kj->ki", tops.choleskys, scores_at(target, tops.points, tile))
    still = 0.5 * np.sum(slopes**2, axis=1) < numbers.still
    new = np.flatnonzero((above > numbers.excess) & (mass > math.log(numbers.least_mass)) & still)
    shares = np.exp(-np.logaddexp(0.0, -mass[new]))
    return Hidden(tops.rows(new), shares) if len(new) else None


def resolution(dim: int, looks: int, share: float, numbers: Residual) -> float:
    """Return the width of a hidden mode, as a part of the rest's, that looks would see with 95 % probability.

    The mode is a normal somewhere in a normal law. It is seen where its density is `exp(excess)` times the
    law's: in a ball around its centre, whose probability under the looks counts.
    """
    rng = np.random.default_rng(0)
    p2 = rng.chisquare(dim, numbers.trials)
    ball = 0.5 * dim * math.log(math.pi) - math.lgamma(0.5 * dim + 1.0)
    scales = np.geomspace(numbers.wider[0], numbers.wider[1], 9)[:, None]
    wide = np.mean(scales**-dim * np.exp(-0.5 * p2 / scales**2), axis=0)
    law = 0.5 * (np.exp(-0.5 * p2) + wide) * (2.0 * math.pi) ** (-0.5 * dim)
    for width in np.geomspace(1e-6, 1.0, 400):
        room = 2.0 * (math.log(share) - dim * math.log(width) + 0.5 * p2 - numbers.excess)
        inside = ball + dim * (0.5 * np.log(np.maximum(room, 1e-300)) + math.log(width))
        hit = np.exp(np.minimum(inside + np.log(law), 0.0))
        if np.mean(-np.expm1(-looks * hit)) > numbers.sure:
            return float(width)
    return 1.0
