"""Which frame, and which mixture of normals in it, stand best for draws."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.frame import Frame, unbent
from pushforward.latents import IndependentMixtures, Mixture, NormalMixture
from pushforward.recipe.mixtures import fit_independent, fit_mixture, mean_log_density
from pushforward.recipe.state import standard
from pushforward.recipe.table import Annealing, Law, Recipe


def frame_from_draws(
    draws: Float[Array, "n dim"], *, bend: bool = True, law: Law | None = None, correlated: int = 4
) -> Frame:
    """Return the frame in which the draws are centred and white.

    A normal has `r = (q97.7 - q2.3) / (q84 - q16) = 2`; for `sinh(b u)` it is `2 cosh b`, which gives the
    bend of each coordinate. Quantiles, not moments: the moments of a heavy tail are noise.
    """
    law = law or Law()
    x = np.asarray(draws, np.float64)
    q02, q16, q50, q84, q98 = np.quantile(x, [0.0228, 0.1587, 0.5, 0.8413, 0.9772], axis=0)
    width = np.maximum(q84 - q16, 1e-30)
    angle = np.arccosh(np.maximum((q98 - q02) / width / 2.0, 1.0))
    bends = np.where((angle > law.bend_from) & bend, angle, 0.0)
    # sinh(b)/b is one at b = 0: the scale is such that one unit of v is one unit of the middle.
    scale = 0.5 * width / np.where(bends > 0, np.sinh(bends) / np.maximum(bends, 1e-9), 1.0)
    v = np.asarray(unbent(jnp.asarray((x - q50) / scale), jnp.asarray(bends)))
    covariance = np.cov(v, rowvar=False).reshape(v.shape[1], v.shape[1])
    covariance = _without_chance(covariance, len(v) / correlated, law)
    ridge = 1e-8 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    return Frame(
        centre=jnp.asarray(q50, float),
        scale=jnp.asarray(scale, float),
        bend=jnp.asarray(bends, float),
        shift=jnp.asarray(v.mean(0), float),
        matrix=jnp.asarray(np.linalg.cholesky(covariance + ridge), float),
    )


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
    x: Float[Array, "m dim"],
    recipe: Recipe,
    peaks: Float[Array, "k dim"],
    laplace: Frame | None = None,
) -> tuple[Frame, Mixture]:
    """Return the frame, and in it the mixture, that stand best for draws.

    Unseen draws say which. Bends may be wrong: what looks like a coordinate's heavy tail may be modes of
    unequal weight. Where there is one peak, the frame of its curvature, `laplace`, may be better than any
    from draws, few as they are for a covariance.
    """

    def fitted(frame: Frame, key: Key[Array, ""]) -> tuple[Frame, Mixture]:
        u, inside = (jax.vmap(frame.inverse)(points) for points in (x, peaks))
        return frame, mixture_of(key, u, components_for(len(peaks), recipe.annealing), inside, recipe)

    frames = frames_of(x, recipe)
    found = [fitted(*each) for each in zip(frames, jax.random.split(key, len(frames)), strict=True)]
    if laplace is not None:
        found.append((laplace, standard(laplace.dim)))
    held_out = split(x, recipe.annealing.num_snapshots)[1]
    return max(found, key=lambda both: float(_log_likelihood(*both, held_out)))


def frames_of(x: Float[Array, "m dim"], recipe: Recipe) -> list[Frame]:
    """Return the frames that draws suggest: bent, and straight where that is another."""
    words = {"law": recipe.law, "correlated": recipe.annealing.num_snapshots}
    frames = [frame_from_draws(x, **words)]
    if bool(jnp.any(frames[0].bend > 0)):
        frames.append(frame_from_draws(x, bend=False, **words))
    return frames


def components_for(num_peaks: int, numbers: Annealing) -> int:
    """Return how many normals a mixture may have."""
    return numbers.components_many if num_peaks > numbers.many_peaks else numbers.components


@eqx.filter_jit
def _log_likelihood(frame: Frame, mixture: Mixture, x: Float[Array, "m dim"]) -> Float[Array, ""]:
    def one(point):
        u = frame.inverse(point)
        return mixture.log_density(u) - frame.log_det(u)

    return jnp.mean(jax.lax.map(one, x, batch_size=1024))


def split(u: Float[Array, "m dim"], populations: int) -> tuple[Float[Array, "a dim"], Float[Array, "b dim"]]:
    """Return three quarters of the draws to learn from, and the rest to judge by.

    Populations follow each other, and a particle moves little between them, nor far from its copies beside
    it: whole stretches of particles are held out, in all populations.
    """
    each = len(u) // populations
    runs = u[: populations * each].reshape(populations, each, -1)
    at = 3 * each // 4
    return runs[:, :at].reshape(populations * at, -1), runs[:, at:].reshape(populations * (each - at), -1)


def mixture_of(
    key: Key[Array, ""],
    u: Float[Array, "m dim"],
    wanted: int,
    peaks: Float[Array, "k dim"],
    recipe: Recipe,
) -> Mixture:
    """Fit mixtures of several sizes; return the smallest that unseen draws hardly tell from the best.

    Components to spare cost nothing in likelihood and yet do harm: they are narrow, and the mixture's score,
    from which Fisher training starts, is jagged between them.
    """
    train, held_out = split(u, recipe.annealing.num_snapshots)
    fits = _fits(key, train, wanted, peaks, recipe.law)
    found = [float(mean_log_density(mixture, held_out)) for mixture in fits]
    return next(m for m, value in zip(fits, found, strict=True) if value >= max(found) - recipe.law.tolerance)


def _fits(
    key: Key[Array, ""], train: Float[Array, "m dim"], wanted: int, peaks: Float[Array, "k dim"], law: Law
) -> list[Mixture]:
    """Return fits, the simplest first; full covariances may have many entries for the draws there are."""
    dim = train.shape[1]
    # In its frame the law is white; coordinates on their own need fewer rows than shapes do.
    fits: list[Mixture] = [standard(dim), fit_independent(train[: law.entries // dim], law)]
    # So many components as the draws can pay for.
    most = max(1, min(wanted, len(train) // (law.rows_each * dim)))
    if 1 < len(peaks) <= most:
        # Among many modes far apart, rows chosen far from each other still miss some; the peaks do not.
        size, centres = len(peaks), peaks
    else:
        size, centres = most, None
    key_few, *keys = jax.random.split(key, 1 + len(law.alike))
    if size > 1:
        for each, shared in zip(keys, law.alike, strict=True):
            fits.append(fit_mixture(each, train, size, law=law, centres=centres, shared=shared))
    if size > law.few_components:
        fits.append(fit_mixture(key_few, train, law.few_components, law=law))
    return fits


def widened(mixture: Mixture, numbers: Annealing) -> Mixture:
    """Widen every component, and give some of the mass to a broad one.

    Importance weights forgive a start that is too wide, never one that lacks mass.
    """
    dim = mixture.dim
    width = min(numbers.widen, 1.0 + dim**-0.5)
    if isinstance(mixture, IndependentMixtures):
        # Of many coordinates with a broad component each, one would be far out in every draw.
        return IndependentMixtures(mixture.weights, mixture.means, width * mixture.scales)
    share = numbers.wide_share
    return NormalMixture(
        weights=jnp.append((1.0 - share) * mixture.weights, share),
        means=jnp.vstack([mixture.means, jnp.zeros(dim)]),
        choleskys=jnp.concatenate([width * mixture.choleskys, numbers.wide_scale * jnp.eye(dim)[None]]),
    )
