"""What a preset would do: its rows, and the exact sizes of its networks, without training any."""

from collections import Counter
from itertools import pairwise

from reproduce.posterior import RECIPE
from reproduce.studies.covertype.rows import rows
from reproduce.studies.covertype.settings import Settings


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows, then parameters of every network."""
    todo = rows(settings)
    counts = Counter(row.method for row in todo)
    dim = 56 if settings.targets[0] == "covertype" else 55
    s = settings
    assert RECIPE.depth is not None
    paper = linear_maps(s.paper_latents, s.paper_width, 3, dim)
    score = linear_maps(dim, s.paper_width, 3, dim)
    ours = linear_maps(dim, RECIPE.width, RECIPE.depth, 2 * dim)
    lines = [f"{len(todo)} rows on {settings.splits} splits, {dim} coordinates"]
    lines += [f"{method}: {number} rows" for method, number in counts.items()]
    lines.append(f"ours: {ours:,} parameters in the sampler")
    lines += [
        f"{m}: {paper:,} parameters in the sampler, {score:,} in the score net" for m in ("kl", "fisher")
    ]
    return [*lines, f"steingan: {paper:,} parameters in the sampler"]


def linear_maps(in_size: int, width: int, depth: int, out_size: int) -> int:
    """Return the parameters of `depth` hidden layers, weights and biases."""
    sizes = [in_size, *[width] * depth, out_size]
    return sum((a + 1) * b for a, b in pairwise(sizes))
