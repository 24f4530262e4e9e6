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
from reproduce.studies.running import Observe, Study, Work, watching
from reproduce.studies.two_d import settings as names
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
from reproduce.studies.two_d.settings import PUBLISHED, SIX, TRAINED, Settings
from reproduce.studies.two_d.speed import speed_row
from reproduce.studies.two_d.trained import flow_row, one_shot_row
from reproduce.studies.two_d.watch import Store


def rows(settings: Settings) -> list[Row]:
    """Return all rows: the main methods seed by seed, then the baselines, then the clock."""
    found: list[Row] = []

    def add(methods: tuple[str, ...], seed: int) -> None:
        found.extend(Row(method, target, seed) for target in SIX for method in methods)

    for seed in range(settings.seeds):
        add(names.FAMILY, seed)
        if seed == 0:
            add(("exact",), 0)
            found.extend(Row(method, PUBLISHED, 0) for method in names.OF_PUBLISHED)
            for method in names.CHAINS:
                add((method,), 0)
    for seed in range(settings.side_seeds):
        for method in (*names.NEURAL, *names.PLAIN):
            add((method,), seed)
    found.append(Row("settings", SIX[0], 0))
    add(("speed",), 0)
    return [row for row in found if row.method in settings.methods and row.target in settings.targets]


def row_of(record: Record) -> Row:
    """Return the row a record came from; those of the clock and of settings name the method they tell of."""
    method = "speed" if record.metric in TIMED else record.method
    method = "settings" if record.metric.startswith("setting_") else method
    return Row(method, record.target, record.seed or 0)


TIMED = ("seconds_per_1k_draws", "seconds_per_1m_draws", "ratio_to_kl", "break_even")


def settings_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Return how each network is trained, as numbers."""
    found, s = [], judge.settings
    for method in TRAINED:
        told = dict(zip(("parameters", "score_parameters"), parameters(method, s), strict=True))
        if method == "flow":
            told |= {"width": s.flow_width, "batch_size": s.flow_batch_size, "num_steps": s.flow_steps}
            told |= {"learning_rate": s.flow_learning_rate, "latents": judge.target.dim}
        else:
            asked = methods.for_target(recipe(method, s).recipe, judge.target).training
            told |= {name: value for name, value in vars(asked).items() if isinstance(value, int | float)}
            told |= {"annealed": asked.frame == "annealed", "mixture": asked.latent == "mixture"}
            told["latents"] = judge.target.dim + asked.extra_latents
        values = {f"setting_{name}": float(value) for name, value in told.items()}
        found += s.figures(row._replace(method=method), values)
    return found


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
    "settings": settings_row,
    "speed": speed_row,
}
"""How a row is run; all others train one of our networks and judge it."""


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    store, judge_of = Store(folder), cache(lambda name: Judge(name, settings))
    return Work(
        lambda row: WORK.get(row.method, one_shot_row)(row, judge_of(row.target), store),
        watching("ksd_imq_v", "sliced_w2"),
        row_of=row_of,
        clear=store.clear,
    )


run = Study("two_d", rows, _work, lambda settings: recipe("default", settings).recipe).run


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows, then parameters of every network."""
    todo = rows(settings)
    lines = [f"{len(todo)} rows on {len({row.target for row in todo})} targets", *counted(todo)]
    for method in (m for m in TRAINED if m in settings.methods):
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
