"""What was measured, and what is said of it."""

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any


@dataclass(frozen=True)
class BreakEven:
    """What a sampler and NUTS cost on this machine; `print` shows it."""

    target: str
    train_seconds: float
    """Wall-clock time of training, compilation included."""
    seconds_per_draw: float
    """Of the sampler; its draws are independent, so that each is an effective one."""
    nuts_setup_seconds: float
    """NUTS' warm-up, which it too pays once; its compilation is not counted."""
    nuts_seconds_per_effective_draw: float
    nuts_draws: int
    nuts_ess: float
    """Bulk effective sample size of the coordinate that mixes worst."""
    nuts_r_hat: float
    nuts_divergent: float
    """Share of NUTS' steps that diverged."""

    @property
    def draws(self) -> float:
        """Effective draws `n` at which `train + n draw = setup + n nuts`; infinite if NUTS stays cheaper."""
        saved = self.nuts_seconds_per_effective_draw - self.seconds_per_draw
        ahead = self.train_seconds - self.nuts_setup_seconds
        if ahead <= 0:
            return 0.0
        return ahead / saved if saved > 0 else float("inf")

    def as_json(self) -> dict[str, Any]:
        """Return all figures as JSON can hold them; `draws` is `None` where it is infinite."""
        return {**asdict(self), "draws": self.draws if isfinite(self.draws) else None}

    def rows(self) -> list[tuple[str, str]]:
        """Return names and words, for a table."""
        draw, warm_up = _seconds(self.nuts_seconds_per_effective_draw), _seconds(self.nuts_setup_seconds)
        seen = f"{self.nuts_draws:,} draws worth {self.nuts_ess:,.0f}, R-hat {self.nuts_r_hat:.3f}"
        return [
            ("target", self.target),
            ("training", f"{_seconds(self.train_seconds)}, once"),
            ("sampler", f"{_seconds(self.seconds_per_draw)} for each draw"),
            ("NUTS", f"{draw} for each effective draw, after {warm_up} of warm-up"),
            ("measured on", seen),
            ("break-even", self._verdict()),
            *(("note", note) for note in self.notes()),
        ]

    def notes(self) -> list[str]:
        """Return what to keep in mind."""
        notes = ["A draw of the sampler counts as one only as far as the sampler is right: check it first."]
        if not self.nuts_r_hat < 1.05:
            notes.append("NUTS' chains disagree, so that its effective draws may be worth less than counted.")
        if self.nuts_divergent > 0.01:
            notes.append(f"{self.nuts_divergent:.0%} of NUTS' steps diverged: it misses part of the target.")
        if self.nuts_ess < 100:
            notes.append("NUTS gave few effective draws within the budget: its cost is a rough guess.")
        return notes

    def _verdict(self) -> str:
        if self.draws == 0.0:
            return "at once: training took no longer than NUTS' warm-up"
        if not isfinite(self.draws):
            return "never: NUTS' effective draws are cheaper than the sampler's"
        # To three digits: more would promise what timings do not hold.
        return f"after {float(f'{self.draws:.3g}'):,.0f} effective draws"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {words}" for name, words in rows)


def _seconds(seconds: float) -> str:
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
    unit = next((unit for unit, size in units.items() if seconds >= size), "ns")
    return f"{seconds / units.get(unit, 1e-9):.3g} {unit}"
