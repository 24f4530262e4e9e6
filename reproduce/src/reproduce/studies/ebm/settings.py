"""How large the study is: presets from seconds to the paper's own sizes."""

from dataclasses import dataclass
from typing import ClassVar

from reproduce.studies.settings import StudySettings

STAGES = ("classifier", "energy", "langevin", "sampler", "fisher", "judge", "ship")
"""In order: each is its own piece with a checkpoint, and needs those before it."""

SAMPLERS = ("kl", "kl-plain", "fisher")
"""Our recipe, the paper's loop as it stands, and Fisher training from the start of ours."""


@dataclass(frozen=True, kw_only=True)
class Settings(StudySettings):
    """What is trained, for how long, and on how many images each figure stands.

    **Run.** `stages` to run; `seed`; `checkpoint_seconds` between two checkpoints, which is what a kill may
    cost. `data`: a folder of images; `made_images`: so many made ones instead.

    **Noise.** `sigma_min` to `sigma_max`; levels are drawn log-uniformly, stratified over a batch.

    **Classifier.** `classifier`: `small` (of `classifier_widths`) or `wide` (WideResNet-16-8);
    `classifier_steps` of `classifier_batch`, 0.18 s each on one core for the small one.

    **Energy.** `energy`: `distance` (a U-Net of `energy_widths` with `energy_middle` units in its middle) or
    `residual` (the paper's, of `residual_base` channels); `energy_steps` of `energy_batch` at `energy_rate`,
    which falls to zero over the last 40 %. A step takes 0.2 s on one core.

    **Langevin.** `evaluations` of each row, `row_sets` sets of `row_images` images in each, in batches of
    `langevin_batch`; `mixing`: how much the images move about, `late_mixing` at noise levels up to
    `late_from` (`baselines.annealed_langevin.schedule`). Chosen by the FID of 1,536 draws against training
    images, among four schedules of 50 evaluations.

    **Sampler.** `samplers` to train; `generator`: `small` or `paper`; `latent`; `generator_widths`; `kinds`
    of images that the first latent tells apart (`kinds.py`). `teacher_images` draws of the energy by
    `teacher_evaluations` each, for the start: `sketch_steps` of fitting them with an encoder, then
    `start_steps` with a critic, at `start_rate` and with `start_moments` the weight of the features' moments
    beside it, after `first_critic_steps` of the critic alone. Then `sampler_steps` with `score_steps` score
    steps each, after `first_score_steps` times as many alone, at rates `sampler_rate` and `score_rate`, in
    batches of `sampler_batch`, at noise levels up to `sampler_sigma_max`, which weigh by `sigma^kl_lift` in
    KL (`recipes.Recipe.lift`); `average`: of the moving averages. `fisher_steps` for the Fisher sampler;
    `plain_steps` for the paper's own loop. `recipe`: `warm`, or `plain` for that loop throughout.

    **Judging.** `judge_images` of a sampler, and `judge_sets` sets of `row_images`, over which its FID is
    averaged; `fresh_sets` of the Langevin row that comes out best; `speed_repeats` timings at each of
    `speed_batches`.
    """

    study: ClassVar = "ebm"
    choices: ClassVar = {
        "stages": STAGES,
        "samplers": SAMPLERS,
        "classifier": ("small", "wide"),
        "energy": ("distance", "residual"),
        "recipe": ("warm", "plain"),
        "generator": ("small", "paper"),
    }
    least: ClassVar = {
        **dict.fromkeys(("seed", "start_moments", "checkpoint_seconds", "kl_lift"), 0),
        **dict.fromkeys(("latent", "evaluations"), 2),
    }

    stages: tuple[str, ...] = STAGES
    seed: int = 0
    checkpoint_seconds: float = 60.0
    data: str | None = None
    made_images: int | None = None

    sigma_min: float = 0.3
    sigma_max: float = 3.0

    classifier: str = "small"
    classifier_widths: tuple[int, ...] = (32, 64, 128)
    classifier_steps: int = 1400
    classifier_batch: int = 128
    classifier_rate: float = 3e-3

    energy: str = "distance"
    energy_widths: tuple[int, ...] = (16, 48, 96)
    energy_middle: int = 128
    residual_base: int = 64
    energy_steps: int = 14_000
    energy_batch: int = 64
    energy_rate: float = 1.5e-3

    evaluations: tuple[int, ...] = (50, 100, 150, 200, 250)
    row_images: int = 5000
    row_sets: int = 2
    langevin_batch: int = 64
    mixing: float = 4.6
    late_mixing: float = 15.0
    late_from: float = 0.8

    samplers: tuple[str, ...] = SAMPLERS
    generator: str = "small"
    latent: int = 128
    generator_widths: tuple[int, int, int] = (128, 64, 32)
    kinds: int = 64
    teacher_images: int = 16_384
    teacher_evaluations: int = 50
    sketch_steps: int = 2000
    start_steps: int = 8000
    first_critic_steps: int = 500
    first_score_steps: int = 1000
    sampler_steps: int = 300
    sampler_batch: int = 64
    score_steps: int = 2
    sampler_rate: float = 2e-5
    score_rate: float = 5e-4
    sampler_sigma_max: float = 3.0
    kl_lift: float = 2.0
    start_moments: float = 0.1
    start_rate: float = 2e-4
    average: float = 0.998
    fisher_steps: int = 300
    plain_steps: int = 150
    recipe: str = "warm"

    judge_images: int = 5000
    judge_sets: int = 40
    fresh_sets: int = 12
    speed_repeats: int = 10
    speed_batches: tuple[int, ...] = (16, 64, 256)

    def __post_init__(self):
        super().__post_init__()
        if self.kinds > self.teacher_images:
            raise ValueError(
                f"`kinds` must be at most `teacher_images`, {self.teacher_images}, which are sorted into "
                f"them; got {self.kinds}."
            )
        if self.recipe == "warm" and self.generator != "small":
            raise ValueError(
                "`recipe`: a warm start needs the generator `small`, which knows kinds of images; got "
                f"{self.generator!r}. Use `plain`."
            )
        if not self.sigma_min < self.sampler_sigma_max <= self.sigma_max:
            raise ValueError(
                "`sampler_sigma_max` must be above `sigma_min` and at most `sigma_max`; got "
                f"{self.sampler_sigma_max} with {self.sigma_min} and {self.sigma_max}."
            )


PRESETS: dict[str, Settings] = {
    "smoke": Settings(
        preset="smoke", made_images=160, classifier_steps=8, classifier_batch=16, classifier_widths=(4,),
        energy_widths=(4,), energy_middle=4, energy_steps=4, energy_batch=8,
        evaluations=(2, 4), row_images=16, row_sets=2, langevin_batch=8,
        generator_widths=(8, 6, 4), latent=8, kinds=3, teacher_images=16, teacher_evaluations=3,
        sketch_steps=3, start_steps=3, first_critic_steps=2, first_score_steps=2, sampler_steps=3,
        sampler_batch=8, fisher_steps=2, plain_steps=2, judge_images=32, judge_sets=2, fresh_sets=2,
        speed_repeats=1, speed_batches=(8,),
    ),
    "cpu": Settings(preset="cpu"),
    "paper": Settings(
        preset="paper", classifier="wide", energy="residual", generator="paper", samplers=("kl", "fisher"),
        classifier_steps=23_400, energy_steps=200_000, energy_batch=128, energy_rate=1e-3,
        energy_widths=(64, 128, 256), row_images=5000, teacher_images=5120, sampler_steps=100_000,
        score_steps=1,
        sampler_rate=1e-4, score_rate=1e-4, fisher_steps=100_000, plain_steps=100_000, recipe="plain",
    ),
}  # fmt: skip
"""`smoke` takes seconds, on made images; `cpu` about four hours of one core, of which one goes to the
energy, one to the stage `sampler` and one and a half to Langevin draws; `paper` wants a GPU."""
