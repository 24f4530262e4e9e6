"""What is asked of draws, as protocols `(key, draws, truth) -> value`: a floor is the same of exact draws."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy.special import entr
from jaxtyping import Array, Float, Key

from pushforward.base import KnownExact, Target
from pushforward.metrics import PROTOCOLS, Protocol, against_exact, sliced_w2
from reproduce.metrics.distances import in_asinh, mean_error, sd_ratio
from reproduce.targets import ManyWell
from reproduce.targets.particles import pair_distances

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
BINS = 60
FOUND = 0.1  # a mode counts as found with a tenth of its true share


class Pool(KnownExact):
    """A target whose truth is a set of trusted draws: sampled from without repeats."""

    target: Target
    pool: Float[Array, "m dim"]

    def __init__(self, target: Target, pool: Float[np.ndarray, "m dim"]):
        """Trust `pool`; moments are taken of all of it, in double precision."""
        self.target, self.dim, self.name, self.window = target, target.dim, target.name, None
        self.pool = jax.device_put(np.asarray(pool, np.float32))
        exact = np.asarray(pool, np.float64)
        self.mean = jnp.asarray(exact.mean(axis=0), float)
        self.covariance = jnp.asarray(np.atleast_2d(np.cov(exact.T)), float)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the target's own."""
        return self.target.log_density(x)

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Choose `num_samples` of the trusted draws."""
        if num_samples > self.pool.shape[0]:
            raise ValueError(f"`num_samples` must be at most {self.pool.shape[0]}; got {num_samples}.")
        return self.pool[jax.random.permutation(key, self.pool.shape[0])[:num_samples]]

    def halves(self) -> tuple["Pool", "Pool"]:
        """Return two pools, each of half the chains, whose draws stand sweep by sweep."""
        return Pool(self.target, np.asarray(self.pool[0::2])), Pool(self.target, np.asarray(self.pool[1::2]))


def distance(target: Target, asks: tuple[str, ...], units: Callable | None) -> dict[str, Protocol]:
    """Return the two-sample distances: of the draws, of what symmetries leave alone, or in fair units."""
    if "particles" in asks:
        return {"sliced_w2": eqx.Partial(against_exact, distance=sliced_w2, transform=_invariants(target))}
    if "units" in asks:
        return {"sliced_w2": eqx.Partial(against_exact, distance=sliced_w2, transform=units)}
    found: dict[str, Protocol] = {"sliced_w2": PROTOCOLS["sliced_w2"]}
    if "neck" in asks:
        found["sliced_w2_asinh"] = eqx.Partial(against_exact, distance=sliced_w2, transform=_neck_apart)
    return found


def asked(target: Target, asks: tuple[str, ...]) -> dict[str, Protocol]:
    """Return the other metrics of a case, by name."""
    found: dict[str, Protocol] = {}
    for ask in asks:
        found |= {"modes": _MODES, "moments": _MOMENTS, "neck": _NECK, "wells": _WELLS}.get(ask, {})
        if ask == "particles":
            found |= {"tv_distances": _distances_tv(target), "energy_error": _energy_error}
    return found


def units_of(draws: Float[Array, "n dim"]) -> Callable:
    """Return a change to units in which every coordinate of exact draws has a like spread."""
    x = np.asarray(draws, np.float64)
    low, middle, high = np.quantile(x, [0.16, 0.5, 0.84], axis=0)
    centre, scale = jnp.asarray(middle, float), jnp.asarray((high - low) / 2, float)
    return lambda x: (x - centre) / scale


@eqx.filter_jit
def shares(draws: Float[Array, "n dim"], truth) -> Float[Array, " k"]:
    """Return the mean responsibility of every component: for exact draws, on average its very weight.

    Not the nearest centre, which gives overlapping modes wrong shares of even exact draws.
    """

    def one(x):
        return jax.nn.softmax(_component_logs(truth, x))

    return jnp.mean(jax.lax.map(one, draws, batch_size=1024), axis=0)


def _component_logs(truth, x: Float[Array, " dim"]) -> Float[Array, " k"]:
    if hasattr(truth, "whitens"):
        white = jnp.einsum("kij,kj->ki", truth.whitens, x - truth.means)
        log_det = jnp.sum(jnp.log(jnp.diagonal(truth.whitens, axis1=1, axis2=2)), axis=1)
        return jnp.log(truth.weights) + log_det - 0.5 * jnp.sum(white**2, axis=1)
    # Products of Student's t of two degrees of freedom, `f(r) ~ (2 + r^2)^(-3/2)`.
    return jnp.log(truth.weights) - 1.5 * jnp.sum(jnp.log(2.0 + (x - truth.means) ** 2), axis=1)


def _emc(key, x, truth) -> Float[Array, ""]:
    share = shares(x, truth)
    return jnp.sum(entr(share)) / jnp.log(share.size)


def _modes_found(key, x, truth) -> Float[Array, ""]:
    return jnp.sum(shares(x, truth) > FOUND * truth.weights).astype(float)


def _mode_weight_error(key, x, truth) -> Float[Array, ""]:
    return jnp.max(jnp.abs(shares(x, truth) - truth.weights))


_MODES: dict[str, Protocol] = {
    "emc": _emc,
    "modes_found": _modes_found,
    "mode_weight_error": _mode_weight_error,
}


def _quantile(values: Float[Array, " dim"], share: float) -> Float[Array, ""]:
    return jnp.asarray(np.quantile(np.asarray(values, np.float64), share))


_MOMENTS: dict[str, Protocol] = {
    "mean_error_95": lambda key, x, truth: _quantile(jnp.abs(mean_error(x, truth)), 0.95),
    "mean_error_max": lambda key, x, truth: jnp.max(jnp.abs(mean_error(x, truth))),
    "sd_error_95": lambda key, x, truth: _quantile(jnp.abs(sd_ratio(x, truth) - 1.0), 0.95),
    "sd_error_max": lambda key, x, truth: jnp.max(jnp.abs(sd_ratio(x, truth) - 1.0)),
}


def _neck_sd(key, x, truth) -> Float[Array, ""]:
    neck = np.asarray(x[:, truth.neck], np.float64)
    return jnp.asarray(abs(neck.std(ddof=1) / float(truth.neck_scale) - 1.0))


def _neck_quantiles(key, x, truth) -> Float[Array, ""]:
    """Return the largest error of a quantile, in standard deviations of the neck."""
    neck = (np.asarray(x[:, truth.neck], np.float64) - float(truth.neck_mean)) / float(truth.neck_scale)
    return jnp.asarray(np.max(np.abs(np.quantile(neck, QUANTILES) - scipy.special.ndtri(QUANTILES))))


_NECK: dict[str, Protocol] = {"neck_sd_error": _neck_sd, "neck_quantile_error": _neck_quantiles}


def _neck_apart(x: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    """Take the wide coordinates by their magnitudes, the neck (the first) as it is."""
    return jnp.concatenate([x[:, :1], in_asinh(x[:, 1:], 0.0, 1.0)], axis=1)


def _wells(key, x, truth) -> Float[Array, ""]:
    """Return the largest total variation, over all wells, from the exact marginal on a grid of bins."""
    assert isinstance(truth, ManyWell)
    nodes, cdf = (np.asarray(a, np.float64) for a in (truth.law.nodes, truth.law.cdf))
    return _worst_tv(x[:, 0::2], 3.0, lambda edges: np.interp(edges, nodes, cdf))


def _normals(key, x, truth) -> Float[Array, ""]:
    return _worst_tv(x[:, 1::2], 4.0, scipy.special.ndtr)


_WELLS: dict[str, Protocol] = {"tv_wells": _wells, "tv_normals": _normals}


def _worst_tv(x: Float[Array, "n wells"], limit: float, cdf: Callable) -> Float[Array, ""]:
    edges = np.linspace(-limit, limit, BINS + 1)
    masses, columns = np.diff(cdf(edges)), np.asarray(x).T
    inside = np.stack([np.histogram(column, edges)[0] / len(column) for column in columns])
    # All outside is one more bin.
    outside = np.abs((1 - inside.sum(axis=1)) - (1 - masses.sum()))
    return jnp.asarray(np.max(0.5 * (np.abs(inside - masses).sum(axis=1) + outside)))


def _histogram_tv(x: Float[Array, "n f"], y: Float[Array, "m f"]) -> Float[Array, ""]:
    """Return the total variation of all values of two sets, on bins over the range of the second."""
    a, b = np.asarray(x).ravel(), np.asarray(y).ravel()
    edges = np.linspace(b.min(), b.max(), BINS + 1)
    p, q = np.histogram(a, edges)[0] / a.size, np.histogram(b, edges)[0] / b.size
    return jnp.asarray(0.5 * (np.abs(p - q).sum() + abs(q.sum() - p.sum())))


def _invariants(target) -> Callable:
    """Return the map to sorted pair distances: what turns, shifts and exchanges leave alone."""
    distances = jax.vmap(lambda x: jnp.sort(pair_distances(x, target.num_particles, target.space)))
    return eqx.filter_jit(lambda x: distances(x))


def _distances_tv(target) -> Protocol:
    invariants = _invariants(target)

    def protocol(key, x, truth) -> Float[Array, ""]:
        return _histogram_tv(invariants(x), invariants(truth.sample(key, min(len(x), len(truth.pool)))))

    return protocol


def _energy_error(key, x, truth) -> Float[Array, ""]:
    """Return how far the mean energy is off, in standard deviations of the truth's energies."""
    energy = jax.jit(jax.vmap(truth.target.energy))
    theirs = np.asarray(energy(truth.pool), np.float64)
    ours = np.asarray(energy(x), np.float64)
    return jnp.asarray(abs(ours.mean() - theirs.mean()) / theirs.std())
