"""How large the study is: presets from seconds to the paper's own sizes."""

from dataclasses import dataclass
from typing import ClassVar

from reproduce.studies.settings import FEW, FitSettings

SIX = ("gaussian", "mog2", "rosenbrock", "donut", "funnel", "squiggle")
PUBLISHED = "published_funnel"  # the Funnel with the wrong score that the paper's column speaks for

PAPERS = ("kl", "fisher")
FAMILY = ("default", *PAPERS, "smc", "mixture", "default-thin", "default-sobol")
"""Rows of one target and seed that begin with the same particles: the fits that start from them, what is
known before any network is trained, and what can be made of the default's draws."""

CHAINS = ("ld", "hmc", "svgd")
NEURAL = ("flow", "ksd-ns", "steingan")
PLAIN = ("kl-plain", "fisher-plain")
"""The paper's plain start: no frame, so that the network must find the target's place and size itself."""

TRAINED = ("default", *PAPERS, *NEURAL, *PLAIN)
"""Those with a network, whose settings are told."""

METHODS = (*FAMILY, "exact", *CHAINS, *NEURAL, *PLAIN, "settings", "speed")
OF_PUBLISHED = ("exact", "kl", *CHAINS)


@dataclass(frozen=True, kw_only=True)
class Settings(FitSettings):
    """What runs, how often, and on how many draws each figure stands.

    **Rows.** `targets`, `methods`; `seeds` trainings of the main methods and `side_seeds` of the neural
    baselines.

    **Judging.** `ksd_n` draws for the paper's KSD, over `ksd_repeats` repeats (`chain_repeats` whole runs of
    `chain_steps` iterations for chains and particles); `u_n` draws for the U-statistics and `pair_n` for
    two-sample distances (`mmd_n` for the quadratic one), over `pairs` independent pairs, their floors over
    `floor_pairs`; `checkpoints` of the paper's selection.

    **Better than independent draws.** `thin_n` of a pool of `pool_n`; Sobol sets of `sobol_n` points under
    `sobol_repeats` randomisations.

    **Speed.** `speed_n` draws at a time and `many_n` at once, medians of `speed_repeats` (`slow_repeats`
    where one repeat takes seconds).

    **Flow.** Its sizes and training.
    """

    study: ClassVar = "two_d"
    choices: ClassVar = {"targets": (*SIX, PUBLISHED), "methods": METHODS}
    # A spread needs two.
    least: ClassVar = dict.fromkeys(
        ("pairs", "floor_pairs", "ksd_repeats", "chain_repeats", "checkpoint_repeats"), 2
    )

    targets: tuple[str, ...] = (*SIX, PUBLISHED)
    methods: tuple[str, ...] = METHODS
    seeds: int = 3
    side_seeds: int = 1

    ksd_n: int = 500
    ksd_repeats: int = 100
    chain_repeats: int = 20
    chain_steps: int = 500
    u_n: int = 2500
    pair_n: int = 20_000
    mmd_n: int = 2500
    pairs: int = 20
    floor_pairs: int = 60
    checkpoints: int = 50
    checkpoint_repeats: int = 20

    pool_n: int = 20_000
    thin_n: int = 500
    sobol_n: int = 4096
    sobol_repeats: int = 64

    speed_n: int = 1000
    many_n: int = 1_000_000
    speed_repeats: int = 30
    slow_repeats: int = 5

    flow_steps: int = 2000
    flow_batch_size: int = 512
    flow_learning_rate: float = 1e-3
    flow_width: int = 64


PRESETS: dict[str, Settings] = {
    "smoke": Settings(
        preset="smoke", targets=("gaussian",), seeds=1, max_steps=6, recipe_changes=FEW,
        ksd_n=50, ksd_repeats=2, chain_repeats=2, chain_steps=5,
        u_n=50, pair_n=64, mmd_n=64, pairs=2, floor_pairs=2, checkpoints=2,
        checkpoint_repeats=2, pool_n=256, thin_n=16, sobol_n=64, sobol_repeats=2, speed_n=64, many_n=4096,
        speed_repeats=2, slow_repeats=2, flow_steps=6, flow_batch_size=16, flow_width=8,
    ),
    "cpu": Settings(preset="cpu"),
    "paper": Settings(
        preset="paper",
        methods=tuple(name for name in METHODS if name not in PLAIN),
        flow_steps=10_000, flow_batch_size=5000, flow_learning_rate=2e-5, flow_width=200,
    ),
}  # fmt: skip
"""`smoke` takes seconds, `cpu` about an hour on two cores; `paper` has the paper's sizes and wants a GPU."""
