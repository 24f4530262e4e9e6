"""Which frame, and which mixture of normals in it, stand best for draws."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.frame import Frame
from pushforward.host import generator, into, log_densities, log_det, on_device
from pushforward.latents import IndependentMixtures, Latent, Mixture, NormalMixture, standard
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.mixtures import fit_independent, fit_mixture
from pushforward.recipe.table import Annealing, Law, Recipe

Split = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Parts draws into those to learn from and those to judge by."""

Rows = Float[np.ndarray, "_m dim"]


def frame_from_draws(
    draws: Float[Array | np.ndarray, "n dim"],
    *,
    bend: bool = True,
    law: Law | None = None,
    correlated: int = 4,
) -> Frame:
    """Return the frame in which the draws are centred and white.

    A normal has `r = (q97.7 - q2.3) / (q84 - q16) = 2`; for `sinh(b u)` it is `2 cosh b`, which gives the
    bend of each coordinate. Quantiles, not moments: the moments of a heavy tail are noise.
    """
    law = law or Law()
    x = np.asarray(draws, np.float64)
    dim = x.shape[1]
    q02, q16, q50, q84, q98 = np.quantile(x, [0.0228, 0.1587, 0.5, 0.8413, 0.9772], axis=0)
    width = np.maximum(q84 - q16, 1e-30)
    angle = np.arccosh(np.maximum((q98 - q02) / width / 2.0, 1.0))
    bends = np.where((angle > law.bend_from) & bend, angle, 0.0)
    # sinh(b)/b is one at b = 0: the scale is such that one unit of v is one unit of the middle.
    scale = 0.5 * width / np.where(bends > 0, np.sinh(bends) / np.maximum(bends, 1e-9), 1.0)
    bent = Frame(*(on_device(each) for each in (q50, scale, bends, np.zeros(dim), np.eye(dim))))
    v = into(bent, x)
    covariance = _without_chance(np.cov(v, rowvar=False).reshape(dim, dim), len(v) / correlated, law)
    factor = np.linalg.cholesky(covariance + 1e-8 * np.trace(covariance) / dim * np.eye(dim))
    return Frame(bent.centre, bent.scale, bent.bend, on_device(v.mean(0)), on_device(factor))


def _without_chance(covariance: np.ndarray, num_draws: float, law: Law) -> np.ndarray:
    """Return the covariance with correlations that may be chance set to zero, if that changes it little.

    In many dimensions there are so many of them that whitening by their noise smears what was sharp.
    """
    scale = np.sqrt(np.diag(covariance))
    chance = np.abs(covariance / np.outer(scale, scale)) < law.chance / np.sqrt(num_draws)
    sparse = np.where(chance, 0.0, covariance)
    try:
        factor = np.linalg.inv(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        return covariance
    change = np.linalg.eigvalsh(factor @ sparse @ factor.T)
    low, high = law.chance_bounds
    return sparse if change[0] > low and change[-1] < high else covariance


def stand_in(
    key: Key[Array, ""],
    x: Rows,
    recipe: Recipe,
    peaks: Rows,
    laplace: Frame | None = None,
    part: Split | None = None,
) -> Approximation:
    """Return the frame, and in it the mixture, that stand best for draws.

    Unseen draws say which. Bends may be wrong: what looks like a coordinate's heavy tail may be modes of
    unequal weight. Where there is one peak, the frame of its curvature, `laplace`, may be better than any
    from draws, few as they are for a covariance.
    """
    numbers, part, found = recipe.annealing, part or populations(recipe.annealing), []
    wanted = numbers.components_many if len(peaks) > numbers.many_peaks else numbers.components
    for frame in frames_of(x, recipe):
        latent = mixture_of(key, into(frame, x), wanted, into(frame, peaks), recipe, part)
        found.append(Approximation(frame, latent))
    if laplace is not None:
        found.append(Approximation(laplace, standard(laplace.dim)))
    held_out = part(x)[1]

    def log_likelihood(law: Approximation) -> float:
        u = into(law.frame, held_out)
        return float(np.mean(log_densities(law.latent, u) - log_det(law.frame, u)))

    return max(found, key=log_likelihood)


def frames_of(x: Float[Array | np.ndarray, "m dim"], recipe: Recipe) -> list[Frame]:
    """Return the frames that draws suggest: bent, and straight where that is another."""
    words = {"law": recipe.law, "correlated": recipe.annealing.num_snapshots}
    frames = [frame_from_draws(x, **words)]
    if np.any(np.asarray(frames[0].bend) > 0):
        frames.append(frame_from_draws(x, bend=False, **words))
    return frames


def populations(numbers: Annealing) -> Split:
    """Return what parts annealed draws."""
    return lambda rows: split(rows, numbers.num_snapshots)


def split(u: np.ndarray, populations: int) -> tuple[np.ndarray, np.ndarray]:
    """Return three quarters of the draws to learn from, and the rest to judge by.

    Populations follow each other, and a particle moves little between them, nor far from its copies beside
    it: whole stretches of particles are held out, in all populations.
    """
    each, dim = len(u) // populations, u.shape[1]
    runs = u[: populations * each].reshape(populations, each, dim)
    at = 3 * each // 4
    return runs[:, :at].reshape(-1, dim), runs[:, at:].reshape(-1, dim)


def mixture_of(
    key: Key[Array, ""], u: Rows, wanted: int, peaks: Rows, recipe: Recipe, part: Split
) -> Mixture:
    """Fit mixtures of several sizes; return the smallest that unseen draws hardly tell from the best.

    Components to spare cost nothing in likelihood and yet do harm: they are narrow, and the mixture's score,
    from which Fisher training starts, is jagged between them.
    """
    rng, law, dim, (train, held_out) = generator(key), recipe.law, u.shape[1], part(u)
    train = train[rng.permutation(len(train))[: law.rows]]
    # In its frame the law is white; coordinates on their own need fewer rows than shapes do.
    fits: list[Mixture] = [standard(dim), fit_independent(train[: law.entries // dim], law)]
    # So many components as the draws can pay for: full covariances have many entries.
    most = max(1, min(wanted, len(train) // (law.rows_each * dim)))
    for size in dict.fromkeys(size for size in (*law.sizes, most) if size <= most):
        fits.append(fit_mixture(rng, train, size, law=law))
    if 1 < len(peaks) <= most:
        # Among many modes far apart, rows chosen far from each other still miss some; the peaks do not.
        for shared in law.alike:
            fits.append(fit_mixture(rng, train, len(peaks), law=law, centres=peaks, shared=shared))
    elif most > 1:
        fits.append(fit_mixture(rng, train, most, law=law, shared=law.alike[0]))
    found = [float(np.mean(log_densities(mixture, held_out))) for mixture in fits]
    return next(m for m, value in zip(fits, found, strict=True) if value >= max(found) - law.tolerance)


def hangs_together(latent: Latent, law: Law) -> bool:
    """Whether the normals of a mixture make one mode: from each to each, nowhere does the density dip."""
    if not isinstance(latent, NormalMixture):
        return False
    means = np.asarray(latent.means, np.float64)
    i, j = np.triu_indices(k := len(means), 1)
    if not len(i):
        return True
    steps = np.linspace(0.0, 1.0, 9)[:, None, None]
    between = (means[i] + steps * (means[j] - means[i])).reshape(-1, latent.dim)
    along = log_densities(latent, between).reshape(len(steps), -1)
    linked = np.eye(k, dtype=bool)
    linked[i, j] = linked[j, i] = along.min(axis=0) > np.minimum(along[0], along[-1]) - law.dip
    # As often squared as it takes to go from any to any.
    for _ in range(k.bit_length()):
        linked = linked @ linked
    return bool(linked.all())


def widened(law: Approximation, recipe: Recipe) -> Mixture:
    """Widen every component, and give some of the mass to a broad one; along necks, widen much more.

    Importance weights forgive a start that is too wide, never one that lacks mass. And what was learnt of
    the widths along a neck holds beyond where particles have been, so that they get there at once.
    """
    numbers, latent = recipe.annealing, law.latent
    dim = latent.dim
    width = np.full((dim, 1), min(numbers.widen, 1.0 + dim**-0.5))
    width[list(law.necks)] *= recipe.necks.reach
    if isinstance(latent, IndependentMixtures):
        # Of many coordinates with a broad component each, one would be far out in every draw.
        return IndependentMixtures(latent.weights, latent.means, on_device(width * np.asarray(latent.scales)))
    assert isinstance(latent, NormalMixture)
    share = numbers.wide_share
    weights = np.append((1.0 - share) * np.asarray(latent.weights), share)
    means = np.vstack([np.asarray(latent.means), np.zeros(dim)])
    factors = np.broadcast_to(np.asarray(latent.choleskys), (len(means) - 1, dim, dim))
    factors = np.concatenate([width * factors, numbers.wide_scale * np.eye(dim)[None]])
    return NormalMixture(*(on_device(each) for each in (weights, means, factors)))
