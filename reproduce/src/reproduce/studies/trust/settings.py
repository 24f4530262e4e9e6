"""How often everything is repeated."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from pushforward.trust import CheckSettings
from reproduce.studies.settings import StudySettings
from reproduce.studies.trust.cases import CASES
from reproduce.studies.trust.cases import EXACT as EXACT_TARGETS
from reproduce.studies.trust.defects import DEFECTS, EXACT

METHODS = (EXACT, *DEFECTS)


@dataclass(frozen=True, kw_only=True)
class Settings(StudySettings):
    """Which rows run, and how large a check is.

    A row is `replicates` checks of one sampler on one target that share one census of the target; exact
    samplers get `blocks` of them, with a census each, so that no census is judged by its luck.
    """

    study: ClassVar = "trust"
    choices: ClassVar = {"targets": CASES, "exact_targets": CASES, "methods": METHODS}

    targets: tuple[str, ...] = tuple(CASES)
    exact_targets: tuple[str, ...] = EXACT_TARGETS
    methods: tuple[str, ...] = METHODS
    replicates: int = 25
    blocks: int = 4
    power_replicates: int = 20
    check: CheckSettings = dataclasses.field(default_factory=CheckSettings)

    @property
    def settings_of_check(self) -> CheckSettings:
        """The check's own settings, with its chains cut short if that was asked for."""
        return self.check.replace(chain_steps=self.steps(self.check.chain_steps))


PRESETS = {
    "smoke": Settings(
        preset="smoke",
        targets=("gaussian",),
        methods=(EXACT, "one mean 0.1 sd off"),
        replicates=2,
        blocks=1,
        power_replicates=2,
        check=CheckSettings(num_draws=1000, ksd_draws=200, num_bootstraps=199, num_chains=400, chain_steps=4),
    ),
    "cpu": Settings(preset="cpu"),
}
"""`smoke` takes seconds; `cpu` well under an hour on one core."""
