"""The study's rows, in the order in which they matter, how each is run, and what a preset would do."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp

from pushforward import methods
from pushforward.latents import standard
from pushforward.recipe.state import State
from pushforward.recipe.train import parts_of
from pushforward.targets import get
from reproduce.records import Record
from reproduce.studies.fitting import size_of
from reproduce.studies.row import Row, counted
from reproduce.studies.running import Observe, Study, Work
from reproduce.studies.two_d.family import (
    annealed_row,
    chain_row,
    default_row,
    exact_row,
    sobol_row,
    thin_row,
)
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.recipes import recipe
from reproduce.studies.two_d.settings import (
    CHAINS,
    FAMILY,
    NEURAL,
    OF_PUBLISHED,
    PAPERS,
    PLAIN,
    PUBLISHED,
    SIX,
    Settings,
)
from reproduce.studies.two_d.speed import speed_row
from reproduce.studies.two_d.trained import flow_row, one_shot_row
from reproduce.studies.two_d.watch import Store


def rows(settings: Settings) -> list[Row]:
    """Return all rows: the main methods seed by seed, then the baselines, then the clock."""
    found: list[Row] = []

    def add(methods: tuple[str, ...], seed: int) -> None:
        found.extend(Row(method, target, seed) for target in SIX for method in methods)

    for seed in range(settings.seeds):
        add(FAMILY, seed)
        if seed == 0:
            add(("exact",), 0)
            found.extend(Row(method, PUBLISHED, 0) for method in OF_PUBLISHED)
            for method in CHAINS:
                add((method,), 0)
    for seed in range(settings.side_seeds):
        for method in (*NEURAL, *PLAIN):
            add((method,), seed)
    add(("speed",), 0)
    return [row for row in found if row.method in settings.methods and row.target in settings.targets]


def row_of(record: Record) -> Row:
    """Return the row a record came from; those of the clock name the method that was timed."""
    timed = record.metric in TIMED
    return Row("speed" if timed else record.method, record.target, record.seed or 0)


TIMED = ("seconds_per_1k_draws", "seconds_per_1m_draws", "ratio_to_kl", "break_even")


WORK: dict[str, Callable[[Row, Judge, Store], list[Record]]] = {
    "default": default_row,
    "smc": annealed_row,
    "mixture": annealed_row,
    "default-thin": thin_row,
    "default-sobol": sobol_row,
    "exact": exact_row,
    "ld": chain_row,
    "hmc": chain_row,
    "svgd": chain_row,
    "flow": flow_row,
    "speed": speed_row,
}
"""How a row is run; all others train one of our networks and judge it."""


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    store, judge_of = Store(folder), cache(lambda name: Judge(name, settings))
    return Work(
        lambda row: WORK.get(row.method, one_shot_row)(row, judge_of(row.target), store),
        _summary,
        row_of=row_of,
        clear=store.clear,
    )


run = Study("two_d", rows, _work, lambda settings: recipe("default", settings).recipe).run


def _summary(found: list[Record]) -> str:
    """Return the figures a reader watches, as multiples of their floors."""
    shown = [r for r in found if r.metric in ("ksd_imq_v", "sliced_w2") and r.floor]
    return "".join(f"{r.metric} {r.value / r.floor:.2f}x, " for r in shown if r.floor)


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows, then parameters of every network."""
    todo = rows(settings)
    lines = [f"{len(todo)} rows on {len({row.target for row in todo})} targets", *counted(todo)]
    trained = [m for m in ("default", *PAPERS, *NEURAL, *PLAIN) if m in settings.methods]
    for method in trained:
        sampler, score = parameters(method, settings)
        words = f"{method}: {sampler:,} parameters in the sampler"
        lines.append(words + (f", {score:,} in the score net" if score else ""))
    return lines


def parameters(method: str, settings: Settings) -> tuple[int, int]:
    """Return the exact parameter counts of a method's sampler and score net."""
    target = get("gaussian")
    if method == "flow":
        from reproduce.rivals import flow

        return size_of(flow.algorithm(target, width=settings.flow_width).init(jax.random.key(0)).trained), 0
    # Shapes alone matter here, so that any mixture and any draws will do.
    found = State(target=target, latent=standard(target.dim), draws=jnp.zeros((2, target.dim)))
    filled = methods.for_target(recipe(method, settings).recipe, target)
    parts = parts_of(jax.random.key(0), found, filled.training)
    # A score that corrects a mixture holds the mixture too; what is trained is its net.
    return size_of(parts.network), size_of(getattr(parts.score_net, "net", parts.score_net))
