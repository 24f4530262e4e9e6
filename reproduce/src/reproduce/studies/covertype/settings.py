"""How large the study is: presets from seconds to the paper's own sizes."""

from dataclasses import dataclass
from typing import ClassVar

from reproduce.studies.settings import StudySettings

TARGETS = ("covertype", "covertype_55")
"""With a bias, 56 coordinates; and without one, the paper's 55."""

REFERENCES = ("nuts", "laplace")
PAPERS = ("kl", "fisher", "steingan", "svgd", "sgld", "dsvi")
"""The paper's methods with its settings, as it prints them."""

WORKING = ("sgld-scaled", "steingan-frame", "svgd-frame", "sgld-frame", "dsvi-frame")
"""With other settings: SGLD with steps for the mean of the rows' scores and not their sum, which three epochs
are too few for; and, which works, all in the Laplace frame, on minibatches of the posterior expanded at its
mode."""

NOISE = ("ours-plain", "ours-plain-large", "noise")
"""What the noise of minibatches does: our recipe with plain ones, and the noise itself."""

SLOW = ("kl", "fisher")
"""A second a step: they have so many seconds and not so many steps, and come last."""

METHODS = (*REFERENCES, "ours", *PAPERS, *WORKING, *NOISE)

STAGES = (
    (*REFERENCES, "ours"),
    ("svgd", "sgld", "dsvi", *WORKING, *NOISE),
    ("steingan", *SLOW),
)
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
