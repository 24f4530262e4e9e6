"""The study's rows, in the order in which they matter: references first, since others stand beside them."""

from itertools import pairwise

from reproduce.posterior import RECIPE
from reproduce.studies.covertype.settings import NOISE, SLOW, STAGES, Settings
from reproduce.studies.row import Row, counted


def rows(settings: Settings) -> list[Row]:
    """Return all rows, stage by stage and in each split by split."""
    return [
        Row(method, target, number)
        for target in settings.targets
        for stage in STAGES
        for number in range(settings.splits)
        for method in stage
        if method in settings.methods and number < splits_of(method, settings)
    ]


def splits_of(method: str, settings: Settings) -> int:
    """Return on how many splits a method is run."""
    if method in SLOW:
        return min(settings.slow_splits, settings.splits)
    return 1 if method in NOISE else settings.splits


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows, then the exact sizes of every network."""
    s, todo, dim = settings, rows(settings), 56 if settings.targets[0] == "covertype" else 55
    assert RECIPE.depth is not None
    paper = linear_maps(s.paper_latents, s.paper_width, 3, dim)
    score = linear_maps(dim, s.paper_width, 3, dim)
    ours = linear_maps(dim, RECIPE.width, RECIPE.depth, 2 * dim)
    return [
        f"{len(todo)} rows on {s.splits} splits, {dim} coordinates",
        *counted(todo),
        f"ours: {ours:,} parameters in the sampler",
        *(f"{m}: {paper:,} parameters in the sampler, {score:,} in the score net" for m in ("kl", "fisher")),
        f"steingan: {paper:,} parameters in the sampler",
    ]


def linear_maps(in_size: int, width: int, depth: int, out_size: int) -> int:
    """Return the parameters of `depth` hidden layers, weights and biases."""
    sizes = [in_size, *[width] * depth, out_size]
    return sum((a + 1) * b for a, b in pairwise(sizes))
