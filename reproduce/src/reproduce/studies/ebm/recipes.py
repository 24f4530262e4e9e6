"""How a one-shot sampler is trained: the paper's loop as it stands, and what makes it good."""

from dataclasses import dataclass

from pushforward.checks import check_choice, check_count, check_positive
from pushforward.frozen import Record
from reproduce.studies.ebm.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Recipe(Record):
    """One way of training.

    **Arguments:**

    - `objective`: `kl`, `fisher` by the projection identity, or none but the `pull`.
    - `warm`: whether the generator starts from a fit to draws of the energy, or from nothing.
    - `corrects`: whether the score net is a correction of the energy's own score, or the whole score.
    - `steps`, `score_steps` each, `batch`.
    - `rate` of the generator, `score_rate`.
    - `sigma_max`: the highest noise level at which the objective is taken.
    - `balanced`: noise levels weigh by what they move an image, over how far it is from the energy's own
        denoised copy; otherwise the score difference is taken times `sigma`.
    - `lift`: the power of `sigma` by which noise levels weigh beside that, for KL: what a sampler still lacks
        shows at high noise, and at low noise the errors of its score net lead it astray.
    - `pull`: weight of the forward term, by which a critic draws the sampler towards draws of the energy.
    - `moments`: weight of the difference between the moments of the energy's features at its draws and at the
        sampler's.
    - `memory`: share of the sampler's moments that a step keeps: moments of too few draws are mostly noise.
    - `average`: of the generator's moving average; `score_average`: of the score net that the objective sees.
    """

    objective: str = "kl"
    warm: bool = True
    corrects: bool = True
    steps: int
    score_steps: int = 2
    batch: int = 64
    rate: float = 2e-4
    score_rate: float = 5e-4
    sigma_max: float = 3.0
    balanced: bool = True
    lift: float = 0.0
    pull: float = 0.0
    moments: float = 0.0
    memory: float = 0.98
    average: float = 0.998
    score_average: float = 0.98

    def __post_init__(self):
        check_choice(self.objective, "objective", ("kl", "fisher", "pull"))
        for name in ("steps", "score_steps", "batch"):
            check_count(getattr(self, name), name)
        for name in ("rate", "score_rate"):
            check_positive(getattr(self, name), name)
        check_positive(self.lift, "lift", zero=True)


def recipe_of(name: str, settings: Settings) -> Recipe:
    """Return the recipe of a method: `kl`, `kl-plain` (the paper's), `fisher`, or the `start` of ours."""
    s = settings
    if name == "kl-plain" or s.recipe == "plain":
        return Recipe(
            objective="fisher" if name == "fisher" else "kl", warm=False, corrects=False,
            steps=s.steps(s.plain_steps),
            score_steps=1, batch=s.sampler_batch, rate=1e-4, score_rate=1e-4, sigma_max=s.sigma_max,
            balanced=False, average=s.average, score_average=0.0,
        )  # fmt: skip
    if name == "start":
        return Recipe(
            objective="pull", steps=s.steps(s.start_steps), batch=s.sampler_batch, rate=s.start_rate,
            pull=1.0, moments=s.start_moments, average=s.average,
        )  # fmt: skip
    # KL and Fisher alike but for `lift`, and nothing beside them: what they gain over the start is their own.
    return Recipe(
        objective=name, steps=s.steps(s.fisher_steps if name == "fisher" else s.sampler_steps),
        score_steps=s.score_steps, batch=s.sampler_batch, rate=s.sampler_rate, score_rate=s.score_rate,
        sigma_max=s.sampler_sigma_max, lift=s.kl_lift if name == "kl" else 0.0, average=s.average,
    )  # fmt: skip
