"""How large the study is, and what each method of the paper is here: as printed, and as it works."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax

from pushforward import Settings as Training
from pushforward.base import Algorithm, Target
from pushforward.frame import InFrame
from pushforward.recipe.parts import build_parts
from pushforward.training import alternating
from reproduce.studies.settings import StudySettings

TARGETS = ("covertype", "covertype_55")  # with a bias, 56 coordinates; and without one, the paper's 55

REFERENCES = ("nuts", "laplace")
PAPERS = ("kl", "fisher", "steingan", "svgd", "sgld", "dsvi")
"""The paper's methods with its settings, as it prints them."""

WORKING = ("sgld-scaled", "steingan-frame", "svgd-frame", "sgld-frame", "dsvi-frame")
"""With other settings: SGLD with steps for the mean of the rows' scores and not their sum, which three epochs
are too few for; and, which works, all in the Laplace frame, on minibatches of the posterior expanded at its
mode."""

NOISE = ("ours-plain", "ours-plain-large", "noise")
"""What the noise of minibatches does: our recipe with plain ones, and the noise itself."""

SLOW = ("kl", "fisher")  # a second a step: they have so many seconds and not so many steps, and come last

METHODS = (*REFERENCES, "ours", *PAPERS, *WORKING, *NOISE)

STAGES = ((*REFERENCES, "ours"), ("svgd", "sgld", "dsvi", *WORKING, *NOISE), ("steingan", *SLOW))
"""What is run first on every split, then second, then last: a study cut short has what matters most."""


@dataclass(frozen=True, kw_only=True)
class Settings(StudySettings):
    """What runs, and on how many draws each figure stands.

    **Rows.** `targets`, `methods`, `splits` of the data (the rows on noise only on the first).

    **Data.** `data`: a folder with covertype.npz, else the environment, the cache or the public source;
    `stand_in_rows`: made data of so many rows instead; `memory_gb`: refuse to start with less than the
    study needs.

    **Judging.** `predictive_draws` for accuracy and log predictive (the paper's 100), `moment_draws` for
    means and standard deviations, `speed_repeats` timings; `looks` at accuracy during training, on the
    first split; `noise_rows` a minibatch where the noise of scores is measured.

    **Ours.** `ours_steps`, `ours_rows` a step.

    **The paper's.** `paper_steps` of network training, in `paper_seconds` for KL and Fisher and
    `kernel_seconds` for SteinGAN, the former on the first `slow_splits` only; `paper_width`,
    `paper_latents`; `chain_steps` of SGLD, `svgd_steps`, `dsvi_steps`; `frame_steps` of those in the
    Laplace frame.

    **NUTS.** `nuts_chains`, `nuts_warmup`, `nuts_draws` a chain, taken `nuts_piece` at a time.
    """

    study: ClassVar = "covertype"
    choices: ClassVar = {"targets": TARGETS, "methods": METHODS}
    least: ClassVar = {"predictive_draws": 2, "nuts_draws": 8}

    targets: tuple[str, ...] = ("covertype",)
    methods: tuple[str, ...] = METHODS
    splits: int = 5

    data: str | None = None
    stand_in_rows: int | None = None
    memory_gb: float = 4.0

    predictive_draws: int = 100
    moment_draws: int = 20_000
    speed_repeats: int = 30
    looks: int = 20
    noise_rows: tuple[int, ...] = (500, 2000, 20_000)

    ours_steps: int = 400
    ours_rows: int = 2000

    paper_steps: int = 10_000
    paper_seconds: float = 1200.0
    slow_splits: int = 1
    kernel_seconds: float = 60.0
    paper_width: int = 1024
    paper_latents: int = 550
    chain_steps: int = 13_944
    svgd_steps: int = 6000
    dsvi_steps: int = 10_000
    frame_steps: int = 3000

    nuts_chains: int = 4
    nuts_warmup: int = 60
    nuts_draws: int = 500
    nuts_piece: int = 50


PRESETS: dict[str, Settings] = {
    "smoke": Settings(
        preset="smoke", splits=1, max_steps=3, stand_in_rows=600, predictive_draws=16, moment_draws=64,
        speed_repeats=2, looks=1, noise_rows=(50, 500),
        ours_steps=3, ours_rows=32,
        paper_steps=2, paper_width=16, paper_latents=8,
        chain_steps=100, svgd_steps=3, dsvi_steps=3, frame_steps=3, nuts_chains=2, nuts_warmup=5,
        nuts_draws=10, nuts_piece=5,
    ),
    "cpu": Settings(preset="cpu"),
    "paper": Settings(
        preset="paper", splits=30, slow_splits=30, paper_seconds=1e9, kernel_seconds=1e9,
    ),
}  # fmt: skip
"""`smoke` takes seconds, on made data; `cpu` under three hours on two cores; `paper` has the paper's
iterations and wants a GPU."""


PAPER_ROWS = 500  # data rows per score of the network methods
CHAIN_ROWS = 100  # and of SGLD, SVGD and DSVI: three epochs are 13,944 iterations of so many

FRAME_ROWS = 500


class Method(NamedTuple):
    """How a method is run: an algorithm of a target, rows a step, steps, and a limit of seconds."""

    build: Callable[[Target], Algorithm]
    rows: int
    steps: int
    seconds: float
    framed: bool = False  # in the Laplace frame, on minibatches of the expanded posterior
    fixed: bool = False  # it has so many draws and no more


def paper_recipe(method: str, settings: Settings) -> Training:
    """Return the paper's network training: four linear maps of 1,024 units, GELU, 550 latents."""
    return Training(
        method=method, frame="identity", latent="normal", latent_dim=settings.paper_latents,
        width=settings.paper_width, depth=3, activation="gelu", skip=False,
        matching="none" if method == "steingan" else "exact", score_width=settings.paper_width,
        score_depth=3, score_activation="gelu", score_steps=2, score_batch_size=100, score_ema=0.0,
        objective=method, num_steps=settings.paper_steps, batch_size=100, learning_rate=2e-4,
        score_learning_rate=2e-4, beta1=0.9, final_rate=1.0, clip=1e12, ema=0.0,
    )  # fmt: skip


def method_of(name: str, settings: Settings, num_rows: int) -> Method:
    """Return how a method of that name is run under these settings."""
    from reproduce.rivals import dsvi, sgld, svgd

    s, draws = settings, settings.predictive_draws
    never = float("inf")
    training = eqx.Partial(_training, name=name.removesuffix("-frame"), settings=settings)
    chain = {"num_kept": draws, "initial_scale": 0.1}
    # In the frame the step is a share of the posterior's width, and every so many iterates one is kept.
    spaced = {"step_size": 0.05, "decay": 0.0, "num_kept": draws, "keep_every": 50, "initial_scale": 1.0}
    walk, mean = partial(eqx.Partial, sgld.algorithm), 0.1 / num_rows
    particles = eqx.Partial(svgd.algorithm, num_particles=draws, step_size=0.05, initial_scale=1.0)
    normal = eqx.Partial(dsvi.algorithm, learning_rate=0.05, initial_scale=0.5, num_draws=16)
    table: dict[str, tuple[Any, ...]] = {
        "kl": (training, PAPER_ROWS, s.paper_steps, s.paper_seconds),
        "fisher": (training, PAPER_ROWS, s.paper_steps, s.paper_seconds),
        "steingan": (training, PAPER_ROWS, s.paper_steps, s.kernel_seconds),
        "steingan-frame": (training, FRAME_ROWS, s.frame_steps, s.kernel_seconds, True),
        "svgd": (particles, CHAIN_ROWS, s.svgd_steps, never, False, True),
        "svgd-frame": (particles, FRAME_ROWS, s.frame_steps, never, True, True),
        "sgld": (walk(**chain), CHAIN_ROWS, s.chain_steps, never, False, True),
        # The paper's 0.1 read as a step for the mean over the rows.
        "sgld-scaled": (walk(step_size=mean, **chain), CHAIN_ROWS, s.chain_steps, never, False, True),
        "sgld-frame": (walk(**spaced), FRAME_ROWS, 2 * s.frame_steps, never, True, True),
        "dsvi": (eqx.Partial(dsvi.algorithm), CHAIN_ROWS, s.dsvi_steps, never),
        "dsvi-frame": (normal, FRAME_ROWS, s.frame_steps, never, True),
    }  # fmt: skip
    return Method(*table[name])


def _training(target: Target, *, name: str, settings: Settings) -> Algorithm:
    """Return the training of a network, in the target's coordinates or in those of its frame."""
    recipe = paper_recipe(name, settings)
    if isinstance(target, InFrame):
        # A small network with a skip starts as the Laplace approximation, which a random one would forget.
        recipe = recipe.replace(
            latent_dim=target.dim, width=64, activation="silu", skip=True, learning_rate=5e-4,
            final_rate=0.02, ema=0.99, num_steps=settings.frame_steps,
        )  # fmt: skip
    return alternating(build_parts(jax.random.key(0), target, recipe))
