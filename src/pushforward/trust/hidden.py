"""Hidden modes: peaks that hold mass, have no draws, and are too narrow for walks to find."""

import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.host import generator, into, squares
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.law import frame_from_draws
from pushforward.recipe.mixtures import fit_mixture
from pushforward.recipe.residual import hidden, num_looks, resolution
from pushforward.recipe.table import Recipe
from pushforward.trust.line import Line
from pushforward.trust.settings import LIMITS


def hidden_lines(key: Key[Array, ""], target: Target, draws: Float[np.ndarray, "n dim"]) -> list[Line]:
    """Return the line of modes that draws leave out, where curvature is affordable.

    A law is fitted to the draws. Of very many draws of that law, those that weigh far too much lie on
    something that the draws do not know. Walks begin there; where they end on a peak, its curvature says how
    much mass it holds, and the draws around it how much they give it.
    """
    recipe, dim = Recipe(), target.dim
    if dim > recipe.dims.many:
        return []
    rng, looks, x = generator(key), num_looks(target, recipe.search), np.asarray(draws, np.float64)
    frame = frame_from_draws(x, correlated=1)
    rows = x[rng.permutation(len(x))[: LIMITS.law_rows]]
    size = max(1, min(LIMITS.law_parts, len(rows) // (recipe.law.rows_each * dim)))
    law = fit_mixture(rng, into(frame, rows), size)
    found = hidden(rng, target, Approximation(frame, law), looks, recipe)
    missed, words = 0.0, "No draw of a law fitted to the draws leads to a peak that they leave out."
    if found is not None:
        away = squares(x, found.peaks.points, found.peaks.choleskys)
        # Nearly all of a normal's draws lie so near.
        shares = np.mean(away < (np.sqrt(dim) + 3.0) ** 2, axis=0)
        without = np.where(shares < LIMITS.missed * found.masses, found.masses, 0.0)
        missed, worst = min(1.0, float(without.sum())), int(np.argmax(without))
        if missed > 0.0:
            point = ", ".join(f"{value:.3g}" for value in found.peaks.points[worst][:4])
            words = (
                f"The peak at ({point}{', ...' if dim > 4 else ''}) holds {found.masses[worst]:.1%} of the "
                f"mass, by its curvature, and {shares[worst]:.1%} of the draws."
            )
    width = resolution(dim, looks, LIMITS.hidden_share, recipe.residual)
    return [
        Line(
            name="hidden",
            title="Hidden modes",
            statistic=missed,
            measure=f"share of the mass on peaks without draws; {looks:,} places looked at",
            null=f"at most {LIMITS.hidden_mass:.0%}",
            breached=missed > LIMITS.hidden_mass,
            grave=missed > LIMITS.grave_mass,
            found=f"{words} {_told(width)}",
            advice="The sampler has missed a narrow mode: fit again, with more `search.looks`.",
            details={"missed": missed, "looks": looks, "width": width, "share": LIMITS.hidden_share},
        )
    ]


def _told(width: float) -> str:
    """Return how narrow a hidden mode would have been seen with 95 % probability."""
    if width >= 1.0:
        return "Few hidden modes would have been seen."
    return (
        f"A mode among the draws with {LIMITS.hidden_share:.0%} of the mass and {_part(width)} of their "
        "width would have been seen with 95 % probability; a narrower one may not."
    )


def _part(width: float) -> str:
    return f"1/{1.0 / width:,.0f}" if width < 0.1 else f"{width:.2f}"
