"""The loop of one training with all that surrounds it: checkpoints, devices, memory, looks, callbacks."""

import warnings
from dataclasses import replace
from math import isfinite
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Algorithm
from pushforward.devices import on_all
from pushforward.host import generator, heights, log_densities, on_device, out_of, sampled, through
from pushforward.objectives.exact_kl import ExactKL
from pushforward.recipe.judge import can_fall_back, in_vain, learnt, some
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.run.progress import progress_bar
from pushforward.sampler import Sampler
from pushforward.training.alternating import Parts, alternating, averaged
from pushforward.training.loop import LoopResult, Position, Row, nothing, run
from pushforward.training.outcome import Outcome
from pushforward.weights import usual


class Trainer:
    """One training of the state's parts, on the fit's `clock`.

    Its looks weigh some draws where the sampler's density is known, else they test them by their KSD; and
    where particles could stand in for the sampler, they tell how many nats below these its draws lie. The
    same latents serve every look, so that rows differ by the network alone.
    """

    def __init__(self, key: Key[Array, ""], state: State, recipe: Recipe, clock: Any):
        assert state.parts is not None
        self.state, self.recipe, self.clock, self.parts = state, recipe, clock, state.parts
        self.key, self.key_look = jax.random.split(key)
        self.seen: dict[int | float, float] = {}
        # Training may end early by its weights; many processes might not agree on when.
        self.weighs = isinstance(recipe.training.main_objective, ExactKL) and jax.process_count() == 1
        if self.weighs:
            count, rng = recipe.judge.weighed_draws, generator(self.key_look)
            self.level = float("-inf")
            if state.draws is not None and recipe.training.judged and can_fall_back(state.dim, recipe):
                some_draws = some(rng, state.draws, count)
                self.level = float(np.median(heights(self.parts.target, some_draws, count)))
            self.z = sampled(rng, self.parts.latent, count)
            self.own = log_densities(self.parts.latent, self.z)
        self.look = self.weighed if self.weighs else self.tested

    def run(self) -> tuple[Parts, LoopResult]:
        """Train to the end, or to what ends it."""
        clock, parts, start = self.clock, self.parts, None
        algorithm, numbers = alternating(parts), clock.numbers
        fresh = algorithm.init(self.key)
        if clock.memory is not None:
            begin = Position(fresh, nothing(algorithm, self.key, fresh))
            start, tiles = clock.memory.recall(begin, parts.num_steps) or (None, parts.tiles)
            self.parts = replace(parts, tiles=tiles)
        if start is not None and self.weighs:
            self.seen = {row["step"]: row["efficiency"] for row in start.rows}
        show = progress_bar(self.state.target.name, parts.num_steps, show=clock.show)
        with show as self.bar, clock.crew.ears:
            result = run(
                self.key, self.algorithm(), fresh, start=start,
                num_steps=parts.num_steps, log_every=max(1, parts.num_steps // numbers.rows),
                monitor=self.monitor, observe=self.observe, ends=self.ends, keep=self.keep,
                shrink=self.shrink, crew=clock.crew, deadline=clock.until(numbers.train_until),
                bad_chunks=numbers.bad_chunks, bad_steps=numbers.bad_steps, look_every=numbers.look_every,
            )  # fmt: skip
        if result.at is not None:
            self.keep(result.at, now=True, lost=result.outcome is Outcome.LOST_PROCESS)
        return self.parts, result

    def algorithm(self) -> Algorithm:
        """Return the algorithm on all devices."""
        crew = self.clock.crew
        return alternating(replace(on_all(self.parts, crew.mesh), mesh=crew.mesh))

    def shrink(self) -> Algorithm | None:
        """Return the algorithm with its batches cut into twice as many tiles, if they can be."""
        tiles, sizes = 2 * self.parts.tiles, (self.parts.batch_size, self.parts.score_batch_size)
        if tiles > self.clock.numbers.most_tiles or any(size % tiles for size in sizes):
            return None
        warnings.warn(
            f"memory ran out: training goes on with each batch in {tiles} tiles, one after the other.",
            stacklevel=2,
        )
        self.parts = replace(self.parts, tiles=tiles)
        return self.algorithm()

    def keep(self, at: Position, **how: bool) -> None:
        """Write down where the training stands, if it is time."""
        if self.clock.memory is not None:
            self.clock.memory.keep(at, tiles=self.parts.tiles, **how)

    def ends(self, row: Row) -> Outcome | None:
        """Say whether the training ends at a row: nothing left to gain, or nothing gained."""
        self.seen[row["step"]] = row.get("efficiency", 0.0)
        if learnt([*self.seen.values()], self.recipe.judge):
            return Outcome.CONVERGED
        vain = in_vain(row, self.parts.num_steps, self.state.dim, self.recipe)
        return Outcome.INACCURATE if vain else None

    def monitor(self, now: Any) -> Row:
        """Look at where the training stands."""
        self.newest = now
        return self.look(now)

    def observe(self, row: Row) -> bool:
        """Tell of a row; say whether the user's callback stops the fit."""
        self.bar(row)
        parts, now, frame = self.parts, self.newest, self.state.coordinates
        told = {"stage": "train", **row}
        return self.clock.tell(told, lambda: Sampler(parts.latent, averaged(parts, now), frame))

    def weighed(self, now: Any) -> Row:
        """Return the effective share of some draws."""
        parts, numbers = self.parts, self.recipe.judge
        height, change = through(parts.target, averaged(parts, now), self.z, numbers.weighed_draws)
        with np.errstate(invalid="ignore"):
            weights = np.nan_to_num(height + change - self.own, nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
        inside = float(np.mean(np.isfinite(height)))
        row: Row = {"efficiency": usual(weights, self.recipe.reweight.parts), "inside": inside}
        return row | ({"below": self.level - float(np.median(height))} if isfinite(self.level) else {})

    def tested(self, now: Any) -> Row:
        """Return the discrepancy of some draws from the target, and how many are where it has a density."""
        from pushforward.metrics.ksd import ksd_imq_v  # which a fit that weighs its draws never asks for

        numbers, sample = self.recipe.judge, alternating(self.parts).sample
        inside = np.asarray(sample(self.key_look, now, numbers.ksd_draws), np.float64)
        draws = out_of(self.state.coordinates, inside)
        finite = bool(np.isfinite(draws).all())
        return {
            "ksd_imq_v": float(ksd_imq_v(on_device(draws), self.state.target)) if finite else float("nan"),
            # Where a log density is flat at minus infinity, no gradient ever says that draws are lost there.
            "inside": float(np.mean(np.isfinite(heights(self.parts.target, inside, numbers.weighed_draws)))),
        }
