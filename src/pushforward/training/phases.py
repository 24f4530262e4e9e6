"""The phases of a fit, in order, and what there is to hand back after each of them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key
from rich.console import Console

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.latents import NormalMixture
from pushforward.metrics import ksd_imq_v
from pushforward.training.alternating import Parts, State, alternating, averaged
from pushforward.training.assemble import build_parts
from pushforward.training.loop import LoopResult, Row, run
from pushforward.training.outcome import Outcome
from pushforward.training.progress import progress_bar
from pushforward.training.repair import repair_weights, weigh
from pushforward.training.settings import Settings
from pushforward.training.teacher import Lesson, learn

LOG_ROWS = 40
"""Rows of history in a run: often enough to see it move, seldom enough to cost nothing."""

MONITOR_DRAWS = 500


class Work:
    """A fit in progress. Whatever moment it is stopped at, `hand_back` returns the best there is so far."""

    def __init__(self, key: Key[Array, ""], target: Target, settings: Settings, *, progress: bool):
        self.target, self.settings, self.progress = target, settings, progress
        keys = jax.random.split(key, 5)
        self.key_check, self.key_teacher, self.key_parts, self.key_train, self.key_repair = keys
        self.phases: list[dict[str, Any]] = []
        self.lesson: Lesson | None = None
        self.parts: Parts | None = None
        self.result: LoopResult | None = None
        self.metrics: dict[str, float] = {}

    def run(self) -> None:
        """Run all phases; an interrupt ends them with the outcome `INTERRUPTED`, if anything was learnt."""
        try:
            self.teach()
            self.build()
            self.train()
            self.repair()
        except KeyboardInterrupt:
            if self.lesson is None and self.result is None:
                raise
            if self.parts is None:
                self.build()
            before = self.result or self._untrained()
            self.result = before._replace(outcome=Outcome.INTERRUPTED)

    @property
    def frame(self) -> Frame:
        """The coordinates in which the network works."""
        return Frame.identity(self.target.dim) if self.lesson is None else self.lesson.frame

    def teach(self) -> None:
        """Learn where the mass lies; after every round there is a lesson to fall back upon."""
        if self.settings.frame == "identity":
            return
        with self._phase("teacher") as found, _status(show=self.progress) as observe:
            for lesson in learn(self.key_teacher, self.target, observe=observe):
                self.lesson = lesson
            assert self.lesson is not None
            found |= {"log_z": self.lesson.log_z, "rounds": self.lesson.rounds}

    def build(self) -> None:
        """Make the network and all that trains it."""
        mixture, draws = (None, None) if self.lesson is None else (self.lesson.mixture, self.lesson.draws)
        framed = InFrame(self.target, self.frame)
        self.parts = build_parts(self.key_parts, framed, self.settings, mixture=mixture, draws=draws)

    def train(self, monitor: Callable[[State], Row] | None = None, num_rows: int = LOG_ROWS) -> None:
        """Train the network, step by step; `monitor` looks at it `num_rows` times."""
        assert self.parts is not None
        num_steps = self.parts.num_steps
        algorithm, (key_steps, key_monitor) = alternating(self.parts), jax.random.split(self.key_train)

        def look(state: State) -> Row:
            draws, inside = _look(self.target, self.frame, algorithm.sample, key_monitor, state)
            finite = bool(jnp.all(jnp.isfinite(draws)))
            ksd = float(ksd_imq_v(draws, self.target)) if finite else float("nan")
            return {"ksd_imq_v": ksd, "inside": float(inside)}

        with (
            self._phase("train") as found,
            progress_bar(self.target.name, num_steps, show=self.progress) as observe,
        ):
            self.result = run(
                key_steps,
                algorithm,
                algorithm.init(key_steps),
                num_steps=num_steps,
                log_every=max(1, num_steps // num_rows),
                monitor=monitor or look,
                observe=observe,
            )
            found |= _in_short(self.result)

    def repair(self) -> None:
        """Put the mode weights right and say how near the sampler came, where its density is known."""
        assert self.parts is not None
        assert self.result is not None
        if self.settings.objective != "exact_kl" or self.result.outcome is Outcome.INTERRUPTED:
            return
        with self._phase("repair") as found:
            network = averaged(self.parts, self.result.state)
            key_weights, key_weigh = jax.random.split(self.key_repair)
            parts = self.parts
            if isinstance(parts.latent, NormalMixture):
                latent = repair_weights(key_weights, parts.target, parts.latent, network)
                parts = eqx.tree_at(lambda p: p.latent, parts, latent)
            weighing = weigh(key_weigh, parts.target, parts.latent, network)
            self.parts = parts
            self.metrics = {"efficiency": float(weighing.efficiency), "log_z": float(weighing.log_z)}
            found |= self.metrics

    def hand_back(self) -> tuple[Parts, Any, LoopResult]:
        """Return the parts, the averaged network and where training came out."""
        assert self.parts is not None
        assert self.result is not None
        return self.parts, averaged(self.parts, self.result.state), self.result

    def _untrained(self) -> LoopResult:
        assert self.parts is not None
        state = alternating(self.parts).init(self.key_train)
        return LoopResult(state, [], Outcome.INTERRUPTED)

    @contextmanager
    def _phase(self, name: str) -> Iterator[dict[str, Any]]:
        """Write down what the phase found and how long it took, even if it is cut short."""
        started, found = time.monotonic(), {}
        try:
            yield found
        finally:
            self.phases.append({"phase": name, "seconds": time.monotonic() - started, **found})


@contextmanager
def _status(*, show: bool) -> Iterator[Any]:
    """Yield a function that says what the teacher is doing."""
    if not show:
        yield lambda words: None
        return
    with Console(stderr=True).status("teacher") as status:
        yield lambda words: status.update(f"teacher: {words}")


def _in_short(result: LoopResult) -> dict[str, Any]:
    skipped = sum(row["skipped"] for row in result.rows) / max(len(result.rows), 1)
    steps = result.rows[-1]["step"] if result.rows else 0
    return {"steps": steps, "skipped": skipped, "outcome": result.outcome.name}


@eqx.filter_jit
def _look(
    target: Target, frame: Frame, sample: Any, key: Key[Array, ""], state: State
) -> tuple[Float[Array, "n dim"], Float[Array, ""]]:
    """Return some draws, and the share of them at which the target has a finite log density.

    Where a log density is flat at minus infinity, no gradient ever says that draws are lost there.
    """
    draws = jax.vmap(frame)(sample(key, state, MONITOR_DRAWS))
    return draws, jnp.mean(jnp.isfinite(jax.vmap(target.log_density)(draws)))
