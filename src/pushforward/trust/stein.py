"""Stein identities, coordinate by coordinate and pair by pair: where and how a sampler is off."""

import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import expit

from pushforward.host import generator, heights
from pushforward.recipe.peaks import between
from pushforward.trust.coordinates import TILE, View
from pushforward.trust.line import Line
from pushforward.trust.nulls import sidak
from pushforward.trust.settings import LIMITS

KINDS = ("location", "scale", "skewness", "tails")


def stein_line(key: Key[Array, ""], view: View) -> Line:
    """Return the test of `E[f s_i + df/du_i] = 0`, which holds for every smooth bounded `f` of exact draws.

    With `v = 3 tanh(u / 3)` the functions are Hermite's polynomials `1, v_i, v_i^2 - 1, v_i^3 - 3 v_i` for
    the location, scale, skewness and tails of each coordinate, and `v_j` with `j != i` for each pair. Where
    few draws carry an average, since the score is heavy-tailed, its bounded form is tested (`_bounded`). The
    largest |z| of all is compared with the normal law, Sidak-corrected. The effect is the step
    `mean / mean of squares`: how far, in standard deviations, draws would have to move along `f`.
    """
    u, s = (np.asarray(a, np.float64) for a in (view.u, view.score))
    n, dim = u.shape
    blocks = [_moments(_hermite(u, s, k)) for k in range(len(KINDS))]
    names = [f"{kind} of x[{i}]" for kind in KINDS for i in range(dim)]
    pairs = ~np.eye(dim, dtype=bool)
    # Moments of `v_j s_i` for every pair, as products of matrices.
    v = _soft(u)
    blocks.append(np.stack([((v**k).T @ (s**k) / n)[pairs] for k in range(1, 5)]))
    others = np.argwhere(pairs)
    names += [f"x[{j}] against x[{i}]" for j, i in others]
    moments, place = (
        np.concatenate(blocks, axis=1),
        np.append(np.tile(np.arange(dim), len(KINDS)), others[:, 1]),
    )
    heavy = ~_usable(moments, n)
    rng = generator(key)
    for i in np.unique(place[heavy]):
        mine = np.flatnonzero(heavy & (place == i))
        partner = [others[k - len(KINDS) * dim, 0] if k >= len(KINDS) * dim else -1 for k in mine]
        moments[:, mine] = _moments(_bounded(rng, view, int(i), mine // dim, np.array(partner)))
    usable = _usable(moments, n)
    first, second, third, _ = moments
    z = np.where(usable, _studentised(first, second, third, n), 0.0)
    tests, untested = max(int(usable.sum()), 1), int((~usable).sum())
    largest = float(np.abs(z).max())
    effect = np.where(usable, np.abs(first) / np.maximum(second, 1e-300), 0.0)
    order = np.argsort(-np.abs(z))[:5]
    worst = int(order[0])
    null = f"normal, Sidak over {tests:,}"
    null += f"; {int(heavy.sum())} in their bounded form" if heavy.any() else ""
    null += f"; {untested} not tested, since few draws carry them" if untested else ""
    return Line(
        name="stein",
        title="Stein identities",
        statistic=largest,
        measure=f"largest |z| of {tests:,}",
        null=null,
        p_value=sidak(largest, tests),
        tested=float(usable.mean()),
        grave=bool(effect[order][np.abs(z[order]) > 0.5 * largest].max(initial=0.0) > LIMITS.grave_effect),
        found=f"Farthest off: {names[worst]}, by about {effect[worst]:.2f} sd (z = {z[worst]:+.1f}).",
        advice="Look at that coordinate's marginal before and after refinement; train longer or refine.",
        details={
            "worst": [
                {"identity": names[k], "z": float(z[k]), "effect": float(effect[k])} for k in map(int, order)
            ],
            "bounded": int(heavy.sum()),
            "left_out": untested,
        },
    )


def _usable(moments: np.ndarray, n: int) -> np.ndarray:
    """Return which averages enough draws carry for them to be normal."""
    _, second, _, fourth = moments
    return (n * second**2 / np.maximum(fourth, 1e-300) >= LIMITS.carried_by) & (second > 0)


def _bounded(
    rng: np.random.Generator, view: View, i: int, kinds: np.ndarray, partners: np.ndarray
) -> np.ndarray:
    """Return bounded forms of identities in coordinate `i`: by `E[a(x, y) (g(y) - g(x))] = 0`.

    Here `y` is `x` after a step in that coordinate, as likely back as forth, `a = q(y) / (q(x) + q(y))`
    (Barker), and `g' = f`. Half the step squared times Stein's identity is what is left for small steps. The
    step is of every size, since widths of the target may be.
    """
    u = np.asarray(view.u, np.float64)
    step = between(rng, LIMITS.steps, (len(u),)) * rng.normal(size=len(u))
    there = u.copy()
    there[:, i] += step
    with np.errstate(over="ignore", invalid="ignore"):
        gain = heights(view.target, there, TILE) - heights(view.target, u, TILE)
        accept = expit(np.where(np.isnan(gain), -np.inf, gain))
    v, w = _soft(u), _soft(there[:, i])
    integrals = (
        lambda a: a,
        lambda a: a**2 / 2.0,
        lambda a: a**3 / 3.0 - a,
        lambda a: a**4 / 4.0 - 1.5 * a**2,
    )
    found = [
        v[:, j] * (w - v[:, i]) if j >= 0 else integrals[kind](w) - integrals[kind](v[:, i])
        for kind, j in zip(kinds, partners, strict=True)
    ]
    return accept[:, None] * np.stack(found, axis=1)


def _soft(u: np.ndarray) -> np.ndarray:
    return LIMITS.soft * np.tanh(u / LIMITS.soft)


def _hermite(u: np.ndarray, s: np.ndarray, k: int) -> Float[np.ndarray, "n dim"]:
    """Return `He_k(v) s + k He_(k-1)(v) v'`: the Stein operator of the k-th function, per coordinate."""
    v = _soft(u)
    slope = 1.0 - (v / LIMITS.soft) ** 2
    polynomials = (np.ones_like(v), v, v**2 - 1.0, v**3 - 3.0 * v)
    return polynomials[k] * s + (k * polynomials[k - 1] * slope if k else 0.0)


def _moments(values: np.ndarray) -> np.ndarray:
    return np.stack([np.mean(values**k, axis=0) for k in range(1, 5)])


def _studentised(first: np.ndarray, second: np.ndarray, third: np.ndarray, n: int) -> np.ndarray:
    """Return `mean / standard error`, with the skewness of a Student statistic taken out (Johnson 1978)."""
    error = np.sqrt(second / n) + 1e-300
    z = first / error
    skew = third / np.maximum(second, 1e-300) ** 1.5 / np.sqrt(n)
    return z + np.clip(skew, -0.1, 0.1) * (1.0 + 2.0 * np.clip(z, -10.0, 10.0) ** 2) / 6.0
