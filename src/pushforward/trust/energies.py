"""Tails by way of the energy: its distribution before and after the short chains."""

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.trust.flips import flip_test
from pushforward.trust.line import Line
from pushforward.trust.moves import Refined
from pushforward.trust.settings import CheckSettings

LEVELS = np.concatenate([[0.002, 0.005, 0.01, 0.02], np.linspace(0.05, 0.95, 19), [0.98, 0.99, 0.995, 0.998]])
GRAVE = 0.1


def energies_line(key: Key[Array, ""], refined: Refined, settings: CheckSettings) -> Line:
    """Return a Kolmogorov-Smirnov test of paired energies `-log q`.

    At each of many levels `t`, taken from both sides together, the share of draws below `t` is compared
    with that of the refined draws; the largest standardised gap counts, and flips of sign give its law.
    """
    before, after = refined.energy_before, refined.energy_after
    levels = np.quantile(np.concatenate([before, after]), LEVELS)
    gaps = (after[:, None] <= levels).astype(np.float32) - (before[:, None] <= levels)
    found = flip_test(key, jax.device_put(gaps.astype(refined.before.dtype)), settings.num_bootstraps)
    worst = int(np.argmax(np.abs(found.t)))
    gap = float(np.abs(gaps.mean(axis=0)).max())
    more = "more" if gaps[:, worst].mean() > 0 else "less"
    return Line(
        name="energies",
        title="Energies before and after",
        statistic=gap,
        measure="largest gap of the distribution functions",
        null=f"{settings.num_bootstraps:,} flips of sign, {len(LEVELS)} levels",
        p_value=found.p_value,
        grave=gap > GRAVE,
        found=f"Refined draws lie {more} often below the energy that {LEVELS[worst]:.1%} stay below "
        f"(t = {found.t[worst]:+.1f}).",
        advice="Tails or core hold too much or too little: look at the energies; refine, or train longer.",
        details={"levels": LEVELS.tolist(), "gaps": gaps.mean(axis=0).tolist()},
    )
