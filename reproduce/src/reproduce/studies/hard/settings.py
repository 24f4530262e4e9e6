"""The study's targets, what is asked of draws of each, and how large the study is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax

from pushforward import methods, targets
from pushforward.base import Target
from pushforward.checks import check_choice, check_duration
from pushforward.recipe.methods import Method
from reproduce.studies.settings import FEW, FitSettings
from reproduce.targets import (
    breast_cancer,
    breast_cancer_hierarchical,
    breast_cancer_quadratic,
    digits_3_8,
    dw4,
    lj13,
    many_well,
    phi4,
    random_target,
    student_t_mixture,
)

EXACT, NUTS, TEMPERING = "exact draws", "long NUTS", "replica exchange"


class Case(NamedTuple):
    """One target, and how it is judged."""

    build: Callable[[], Target]
    asks: tuple[str, ...]  # families of metrics beside the two-sample distance: see `figures`
    truth: str = EXACT
    start_scale: float = 1.0
    """Where chains start: at the target's own spread, which is kinder to them than ignorance."""


def _large_gaussian() -> Target:
    return targets.correlated_gaussian(jax.random.key(0), 1000, 100.0)


CASES: dict[str, Case] = {
    "gmm40": Case(targets.gmm40, ("modes", "log_z"), start_scale=25.0),
    "gmm40_50": Case(partial(targets.gmm40, 50), ("modes", "log_z"), start_scale=25.0),
    "funnel_10": Case(targets.funnel_nd, ("neck", "log_z")),
    "funnel_100": Case(partial(targets.funnel_nd, 100), ("neck",)),
    "many_well_32": Case(many_well, ("wells", "moments", "log_z")),
    "gaussian_1000": Case(_large_gaussian, ("moments",)),
    "breast_cancer": Case(breast_cancer, ("moments",), NUTS),
    "breast_cancer_quadratic": Case(breast_cancer_quadratic, ("moments",), NUTS),
    "breast_cancer_hierarchical": Case(breast_cancer_hierarchical, ("moments",), NUTS),
    "digits_3_8": Case(digits_3_8, ("moments",), NUTS),
    "student_t_mixture": Case(student_t_mixture, ("modes",), start_scale=6.0),
    "phi4": Case(phi4, ("moments",), TEMPERING),
    "dw4": Case(dw4, ("particles",), TEMPERING, start_scale=2.0),
    "lj13": Case(lj13, ("particles",), TEMPERING, start_scale=2.0),
}
"""By name; `random_00` to `random_19` are the members of the random family."""

NUM_RANDOM = 20
RANDOM = tuple(f"random_{number:02d}" for number in range(NUM_RANDOM))
NAMES = (*CASES, *RANDOM)


def case(name: str) -> Case:
    """Return the case of that name."""
    check_choice(name, "targets", NAMES)
    if name in CASES:
        return CASES[name]
    return Case(partial(random_target, int(name.removeprefix("random_"))), ("units",))


RIVALS = ("nuts", "flow")
"""Stopped at the seconds that the default took on the same target with the same seed."""

METHODS = ("reference", "default", "smc", "mixture", *RIVALS, "steps")


@dataclass(frozen=True, kw_only=True)
class Settings(FitSettings):
    """What runs, how often, and on how many draws each figure stands.

    **Rows.** `targets`, `methods`, `seeds` (the random family and the references have one); `budget`: what a
    fit may take.

    **Judging.** `pair_n` draws a side for two-sample distances, over `pairs` pairs, floors over
    `floor_pairs`; `moment_n` draws for moments, quantiles, modes and marginals; `evidence_n` for `log Z`;
    `speed_n` for draws a second.

    **Rivals.** `nuts_chains`, `nuts_warmup` and `nuts_piece` steps at a time until the time is over (but no
    more than `most_rival_seconds`); the flow's sizes.

    **References.** `reference_n` draws: of `reference_chains` of NUTS after `reference_warmup` steps, every
    `reference_nuts_thin` steps; or of replica exchange, every `reference_thin` steps.

    **Cost of a step.** `step_dims` dimensions of a Gaussian, `step_count` steps in each.
    """

    study: ClassVar = "hard"
    choices: ClassVar = {"targets": NAMES, "methods": METHODS}
    # A spread needs two.
    least: ClassVar = {"pairs": 2, "floor_pairs": 2, "step_count": 2, "step_dims": 2}

    targets: tuple[str, ...] = (*CASES, *RANDOM)
    methods: tuple[str, ...] = METHODS
    seeds: int = 3
    budget: str = "5m"

    pair_n: int = 10_000
    pairs: int = 20
    floor_pairs: int = 20
    moment_n: int = 100_000
    evidence_n: int = 4096
    speed_n: int = 100_000

    nuts_chains: int = 4
    nuts_warmup: int = 300
    nuts_piece: int = 50
    most_rival_seconds: float = 300.0
    flow_batch_size: int = 512
    flow_learning_rate: float = 1e-3
    flow_width: int = 64

    reference_n: int = 40_000
    reference_chains: int = 8
    reference_warmup: int = 500
    reference_thin: int = 10
    reference_nuts_thin: int = 4

    step_dims: tuple[int, ...] = (10, 32, 100, 316, 1000)
    step_count: int = 80

    def __post_init__(self):
        super().__post_init__()
        check_duration(self.budget, "budget")
        if self.reference_chains % 2 or self.reference_n % (2 * self.reference_chains):
            raise ValueError(
                "`reference_n` must be a multiple of twice `reference_chains`, an even number: half of the "
                f"chains are held against the others; got {self.reference_n}, {self.reference_chains}."
            )
        if self.reference_n < 2 * self.pair_n:
            raise ValueError(
                f"`reference_n` must be at least twice `pair_n`, {self.pair_n}, so that a floor compares "
                f"different draws; got {self.reference_n}."
            )

    def how(self, name: str) -> Method:
        """Return the method `default` or `annealed` as this preset asks for it."""
        return self.asked(methods.METHODS[name])


PRESETS: dict[str, Settings] = {
    "smoke": Settings(
        preset="smoke", targets=("gmm40", "many_well_32", "dw4", "random_01"), seeds=1, max_steps=4,
        recipe_changes=FEW,
        pair_n=128, pairs=2, floor_pairs=2, moment_n=1024, evidence_n=64, speed_n=2048, nuts_warmup=8,
        nuts_piece=4, nuts_chains=2, most_rival_seconds=2.0, flow_batch_size=16, flow_width=8,
        reference_n=256, reference_chains=4, reference_warmup=10, reference_thin=1, reference_nuts_thin=1,
        step_dims=(2, 4), step_count=4,
    ),
    "cpu": Settings(preset="cpu"),
}  # fmt: skip
"""`smoke` takes a minute or two; `cpu` some five hours on two cores."""
