"""The paper's own figures, its Tables 1 to 4, to stand beside ours; they are in `words/paper.json`."""

import json
from pathlib import Path
from typing import Any

_FIGURES: dict[str, Any] = json.loads((Path(__file__).parent / "words" / "paper.json").read_text("utf-8"))

TARGETS: tuple[str, ...] = tuple(_FIGURES["targets"])

KSD: dict[str, list[tuple[float, float]]] = {
    method: [(mean, spread) for mean, spread in pairs] for method, pairs in _FIGURES["ksd"].items()
}
"""Table 1: mean and standard deviation, per target; the lowest of 50 checkpoints for trained methods."""

SECONDS: dict[str, list[float | None]] = _FIGURES["seconds"]
"""Table 2: seconds per 1,000 draws, its peers uncompiled; it has no Squiggle."""

ACCURACY: dict[str, list[float]] = _FIGURES["accuracy"]
"""Table 3: accuracies in per cent, with its spreads as printed."""

IMAGES: dict[str, list[float]] = _FIGURES["images"]
"""Table 4: FID, KID and seconds; its FID is of another classifier."""


def ksd(method: str, target: str) -> tuple[float, float] | None:
    """Return the paper's KSD and its spread. Its Funnel is the one with the wrong score."""
    target = "funnel" if target == "published_funnel" else target
    return KSD[method][TARGETS.index(target)] if method in KSD else None


def seconds(method: str, target: str) -> float | None:
    """Return the paper's seconds per 1,000 draws."""
    return SECONDS[method][TARGETS.index(target)] if method in SECONDS else None
