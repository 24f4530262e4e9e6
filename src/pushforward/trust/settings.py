"""How hard a check looks; the same for every target."""

import dataclasses
from dataclasses import dataclass

from pushforward.checks import check_count, check_positive

LEAST_DRAWS = 200
"""Below this no line can tell a wrong sampler from an unlucky one."""


@dataclass(frozen=True, kw_only=True)
class CheckSettings:
    """What a check costs and how sure it must be.

    **Arguments:**

    - `num_draws`: how many draws are looked at. With 10,000, an error of a mean below about 0.04 standard
        deviations, or of a standard deviation below 4 %, is invisible; and seldom matters.
    - `level`: the chance that an exact sampler is not trusted, shared by all lines (Holm). The default
        leaves room below 5 % for what is only asymptotically right.
    - `ksd_draws`, `num_bootstraps`: for the kernel test, whose cost grows with the square.
    - `num_chains`, `chain_steps`: short chains from the sampler's own draws.
    - `num_particles`, `census_repeats`: for the search for modes from outside.
    """

    num_draws: int = 10_000
    level: float = 0.03
    ksd_draws: int = 2000
    num_bootstraps: int = 599
    num_chains: int = 4096
    chain_steps: int = 25
    num_particles: int = 4096
    census_repeats: int = 6

    def __post_init__(self):
        check_count(self.num_draws, "num_draws", at_least=LEAST_DRAWS)
        check_count(self.ksd_draws, "ksd_draws", at_least=100)
        check_count(self.num_bootstraps, "num_bootstraps", at_least=99)
        check_count(self.num_chains, "num_chains", at_least=100)
        check_count(self.chain_steps, "chain_steps")
        check_count(self.num_particles, "num_particles", at_least=256)
        check_count(self.census_repeats, "census_repeats", at_least=3)
        if not 0 < check_positive(self.level, "level") < 0.5:
            raise ValueError(f"`level` must lie between 0 and 0.5; got {self.level}.")

    def replace(self, **changes) -> "CheckSettings":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)
