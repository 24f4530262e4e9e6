"""How large the study is."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from pushforward import methods
from pushforward.recipe.methods import Method
from pushforward.trust import CheckSettings
from reproduce.studies.models.cases import CASES, FRONTS, REFERENCE
from reproduce.studies.settings import FEW, FitSettings

METHODS = (REFERENCE, *FRONTS)


@dataclass(frozen=True, kw_only=True)
class Settings(FitSettings):
    """What runs, how often, and what it is held against.

    **Rows.** `targets` (models), `methods` (the reference and the front ends), `seeds` fits of each.

    **Reference.** NumPyro's NUTS: `chains` of `length` draws after `warmup`.

    **Judging.** `num_draws` of each sampler for means and standard deviations; `check` as a user runs it.
    """

    study: ClassVar = "models"
    choices: ClassVar = {"targets": CASES, "methods": METHODS}
    # R-hat needs two chains, and both it and the effective sample size a few draws of each.
    least: ClassVar = {"chains": 2, "length": 8, "num_draws": 100}

    targets: tuple[str, ...] = tuple(CASES)
    methods: tuple[str, ...] = METHODS
    seeds: int = 2

    chains: int = 4
    warmup: int = 1000
    length: int = 5000

    num_draws: int = 100_000
    check: CheckSettings = dataclasses.field(default_factory=CheckSettings)

    @property
    def how(self) -> Method:
        """The method of every fit: the default, as this preset asks for it."""
        return self.asked(methods.METHODS["default"])


PRESETS = {
    "smoke": Settings(
        preset="smoke",
        targets=("eight_schools_non_centred",),
        methods=(REFERENCE, "numpyro", "plain"),
        seeds=1,
        max_steps=4,
        recipe_changes=FEW,
        chains=2,
        warmup=100,
        length=100,
        num_draws=2000,
        check=CheckSettings(num_draws=1000, ksd_draws=200, num_bootstraps=199, num_chains=400, chain_steps=4),
    ),
    "cpu": Settings(preset="cpu"),
}
"""`smoke` takes a minute; `cpu` about an hour on one core."""
