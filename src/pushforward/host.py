"""Decisions on the host, in NumPy: each small operation of JAX's would be a program to compile.

What asks the target is compiled once for each question, at a fixed number of points.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Latent, Mixture, NormalMixture
from pushforward.objectives.exact_kl import value_and_log_det
from pushforward.operations import OneByOne
from pushforward.weights import log_sum


def generator(key: Key[Array, ""]) -> np.random.Generator:
    """Return NumPy's random numbers of a key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())


def on_device(array: np.ndarray) -> Array:
    """Return an array of numbers as JAX computes with them."""
    return jax.device_put(np.asarray(array, jax.dtypes.canonicalize_dtype(float)))


# The target.


@eqx.filter_jit
def _heights(law: Target | Latent, x: Float[Array, "n dim"]) -> Float[Array, " n"]:
    return jax.vmap(law.log_density)(x)


@eqx.filter_jit
def _hessians(target: Target, x: Float[Array, "k dim"]) -> Float[Array, "k dim dim"]:
    if isinstance(target, OneByOne):
        return jax.lax.map(target.hessian, x)
    return jax.lax.map(jax.hessian(target.log_density), x, batch_size=8)


@eqx.filter_jit
def _scores(target: Target, x: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    return jax.vmap(target.score)(x)


@eqx.filter_jit
def _through(target: Target, network: Any, z: Float[Array, "n dim"]) -> Float[Array, "n 2"]:
    def one(point):
        x, change = value_and_log_det(network, point)
        return jnp.stack([target.log_density(x), change])

    return jax.vmap(one)(z)


@eqx.filter_jit
def _mapped(network: Any, z: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    return jax.vmap(network)(z)


@eqx.filter_jit
def _inverted(network: Any, u: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    return jax.vmap(lambda point: network.inverse_and_log_det(point)[0])(u)


def mapped(network: Any, z: np.ndarray, tile: int) -> Float[np.ndarray, "n dim"]:
    """Return what a network makes of latents."""
    return in_tiles(lambda rows: _mapped(network, rows), z, tile)


def inverted(network: Any, u: np.ndarray, tile: int) -> Float[np.ndarray, "n dim"]:
    """Return the latents of which an invertible network makes points."""
    return in_tiles(lambda rows: _inverted(network, rows), u, tile)


def heights(target: Target, x: np.ndarray, tile: int) -> Float[np.ndarray, " n"]:
    """Return log densities, `tile` points in one go; what is not finite is as low as can be."""
    return _finite(in_tiles(lambda rows: _heights(target, rows), x, tile))


def through(target: Target, network: Any, z: np.ndarray, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the log densities at what a square map makes of latents, and its log determinants there."""
    height, change = in_tiles(lambda rows: _through(target, network, rows), z, tile).T
    return _finite(height), change


@np.errstate(over="ignore", invalid="ignore")
def pulled(target: Target, network: Any, z: np.ndarray, tile: int) -> Float[np.ndarray, " n"]:
    """Return the log densities, at latents, of a target seen through a square map."""
    height, change = through(target, network, z, tile)
    return _finite(height + change)


def densities(law: Latent, x: np.ndarray, tile: int) -> Float[np.ndarray, " n"]:
    """Return the log densities of a law at very many points, by a compiled program."""
    return in_tiles(lambda rows: _heights(law, rows), x, tile)


def scores_at(target: Target, x: np.ndarray, tile: int) -> Float[np.ndarray, "n dim"]:
    """Return scores; what is not finite is zero."""
    found = in_tiles(lambda rows: _scores(target, rows), x, tile)
    return np.where(np.isfinite(found), found, 0.0)


def hessians(target: Target, x: np.ndarray, tile: int) -> Float[np.ndarray, "k dim dim"]:
    """Return the second derivatives of the log density at each point."""
    return in_tiles(lambda rows: _hessians(target, rows), x, tile)


def in_tiles(ask: Callable[[Array], Array], x: np.ndarray, tile: int) -> np.ndarray:
    """Ask at so many points in one go, the last ones made up: one program serves any number."""
    starts = range(0, len(x), tile)
    asked = [ask(on_device(np.resize(x[first : first + tile], (tile, *x.shape[1:])))) for first in starts]
    return np.concatenate([np.asarray(each, np.float64) for each in asked])[: len(x)]


def _finite(found: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(found), found, -np.inf)


# A frame, in double precision and for many points. A sampler that ran away has draws that are no numbers.


@np.errstate(over="ignore", invalid="ignore")
def out_of(frame: Frame, u: np.ndarray) -> np.ndarray:
    """Map points out of a frame."""
    centre, scale, bend, shift, matrix = _fields(frame)
    v = shift + u @ matrix.T
    safe = np.where(bend > 0, bend, 1.0)
    return centre + scale * np.where(bend > 0, np.sinh(safe * v) / safe, v)


def into(frame: Frame, x: np.ndarray) -> np.ndarray:
    """Map points into a frame."""
    centre, scale, bend, shift, matrix = _fields(frame)
    w = (x - centre) / scale
    safe = np.where(bend > 0, bend, 1.0)
    v = np.where(bend > 0, np.arcsinh(safe * w) / safe, w)
    return solve_triangular(matrix, (v - shift).T, lower=True).T


@np.errstate(over="ignore", invalid="ignore")
def log_det(frame: Frame, u: np.ndarray) -> np.ndarray:
    """Return `log |det dx/du|` at points in a frame."""
    _, scale, bend, shift, matrix = _fields(frame)
    h = np.abs(bend * (shift + u @ matrix.T))
    log_cosh = h + np.log1p(np.exp(-2.0 * h)) - np.log(2.0)
    return np.sum(np.log(scale) + log_cosh + np.log(np.diagonal(matrix)), axis=1)


def _fields(frame: Frame) -> list[np.ndarray]:
    fields = frame.centre, frame.scale, frame.bend, frame.shift, frame.matrix
    return [np.asarray(each, np.float64) for each in fields]


# A mixture.


def component_logs(law: Latent, z: np.ndarray) -> np.ndarray:
    """Return `log w_c + log N(z; m_c, C_c)`: a column a component, for each coordinate if these are alone."""
    if isinstance(law, IndependentMixtures):
        weights, means, scales = (np.asarray(a, np.float64) for a in (law.weights, law.means, law.scales))
        away = (z[:, :, None] - means) / scales
        with np.errstate(divide="ignore"):
            weights = np.log(weights)
        return weights - np.log(scales) - 0.5 * np.log(2.0 * np.pi) - 0.5 * away**2
    assert isinstance(law, NormalMixture)
    weights, means, factors = (np.asarray(a, np.float64) for a in (law.weights, law.means, law.choleskys))
    return normal_logs(z, weights, means, np.broadcast_to(factors, (len(means), *factors.shape[1:])))


def normal_logs(
    z: np.ndarray, weights: np.ndarray, means: np.ndarray, factors: np.ndarray, freedom: float = np.inf
) -> np.ndarray:
    """Return the same for normals with Cholesky factors, or t laws of so many degrees of freedom."""
    dim, logs = z.shape[1], squares(z, means, factors)
    with np.errstate(divide="ignore"):
        constant = np.log(weights) - np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    if np.isinf(freedom):
        return constant - 0.5 * dim * np.log(2.0 * np.pi) - 0.5 * logs
    both = 0.5 * (freedom + dim)
    constant += gammaln(both) - gammaln(0.5 * freedom) - 0.5 * dim * np.log(np.pi * freedom)
    return constant - both * np.log1p(logs / freedom)


def squares(x: np.ndarray, points: np.ndarray, factors: np.ndarray) -> Float[np.ndarray, "n k"]:
    """Return how far places are from points, in deviations by the points' factors, squared."""
    k, dim = points.shape
    inverses = np.stack([solve_triangular(each, np.eye(dim), lower=True) for each in factors])
    offsets = np.einsum("kij,kj->ki", inverses, points)
    found = np.empty((len(x), k))
    # So many rows at once as the processor keeps near.
    rows = max(16, 2**18 // (k * dim))
    for first in range(0, len(x), rows):
        away = (x[first : first + rows] @ inverses.reshape(k * dim, dim).T).reshape(-1, k, dim) - offsets
        found[first : first + rows] = np.einsum("nki,nki->nk", away, away)
    return found


def log_densities(law: Latent, z: np.ndarray) -> Float[np.ndarray, " n"]:
    """Return the log densities of a law of latents."""
    if not isinstance(law, Mixture):
        return np.asarray(jax.vmap(law.log_density)(on_device(z)), np.float64)
    logs = log_sum(component_logs(law, z))
    return logs.sum(axis=1) if logs.ndim == 2 else logs


def sampled(rng: np.random.Generator, law: Latent, count: int) -> np.ndarray:
    """Draw from a law of latents."""
    if not isinstance(law, Mixture):
        return np.asarray(law.sample(jax.random.key(int(rng.integers(2**31))), count), np.float64)
    weights, means = np.asarray(law.weights, np.float64), np.asarray(law.means, np.float64)
    noise = rng.standard_normal((count, law.dim))
    if isinstance(law, IndependentMixtures):
        which = np.stack([rng.choice(len(w), count, p=w / w.sum()) for w in weights], axis=1)
        rows = np.arange(law.dim)
        return means[rows, which] + np.asarray(law.scales, np.float64)[rows, which] * noise
    factors = np.asarray(law.choleskys, np.float64)
    return placed(rng, noise, weights, means, np.broadcast_to(factors, (len(means), *factors.shape[1:])))


def placed(
    rng: np.random.Generator, noise: np.ndarray, weights: np.ndarray, means: np.ndarray, factors: np.ndarray
) -> np.ndarray:
    """Give each row of noise a component's place and shape."""
    which, x = rng.choice(len(weights), len(noise), p=weights / weights.sum()), np.empty_like(noise)
    for k in range(len(weights)):
        x[which == k] = means[k] + noise[which == k] @ factors[k].T
    return x
