"""Draws of a sampler and of the energy, held against each other by the moments of the energy's features.

A critic says which way a single image should move; moments say what is wrong with all of them together, such
as too few twos. With normal laws of the same moments in place of the features', the best map from one law to
the other is known in closed form, and its displacement is what moves the sampler.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt8

from reproduce.images import UNet
from reproduce.studies.ebm.noise import Batch, Image, noisy

LEVELS = (0.05, 0.5)
"""Noise in which features are seen: the net knows nothing of images without any."""

FEATURES, ROWS, PIECE = 256, 2048, 128
"""Features at most, images that say which, and images that are looked at at a time."""

EVERY = 10
"""Steps between two looks at how moments differ."""

RIDGE = 1e-3
"""Added to variances, of which a feature has one on average."""


class Features(eqx.Module):
    """What a U-Net sees on its coarsest level, in the directions in which the energy's draws spread most."""

    net: UNet
    centre: Float[Array, " seen"]
    axes: Float[Array, "seen features"]

    def __call__(self, x: Image) -> Float[Array, " features"]:
        """Return the features of one image."""
        return (_seen(self.net, x) - self.centre) @ self.axes


class Moments(NamedTuple):
    """The first two moments of features."""

    mean: Float[Array, " features"]
    second: Float[Array, "features features"]

    @property
    def covariance(self) -> Float[Array, "features features"]:
        """The covariance, with a ridge."""
        apart = self.second - jnp.outer(self.mean, self.mean)
        return 0.5 * (apart + apart.T) + RIDGE * jnp.eye(len(self.mean))


class Lead(NamedTuple):
    """What a sampler's moments are, and the linear part of the map from them to those wanted."""

    moments: Moments
    matrix: Float[Array, "features features"]


def features_of(
    key: Key[Array, ""], net: UNet, images: UInt8[np.ndarray, "n height width"]
) -> tuple[Features, Moments]:
    """Return features in which the images have unit variance on average, and their moments."""
    seen = looks(key, eqx.Partial(_seen, net), images, LEVELS)
    centre = seen.mean(axis=0)
    rows = (seen - centre)[:ROWS]
    # By inner products of images, of which there are fewer than of pixels in a large image.
    values, vectors = np.linalg.eigh((rows @ rows.T).astype(np.float64) / len(rows))
    count = min(FEATURES, rows.shape[1], max(1, len(rows) // 4))
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    axes = rows.T @ (vectors / np.sqrt(len(rows) * np.maximum(values, 1e-12)))
    axes = axes / np.sqrt(np.maximum(values.mean(), 1e-12))
    found = (seen - centre) @ axes
    moments = Moments(found.mean(axis=0), found.T @ found / len(found))
    arrays = (jax.device_put(np.asarray(a, np.float32)) for a in (centre, axes, *moments))
    centre, axes, mean, second = arrays
    return Features(net, centre, axes), Moments(mean, second)


def first_lead(wanted: Moments) -> Lead:
    """Return the lead of a sampler that is taken to be right until it is looked at."""
    return Lead(wanted, jnp.eye(len(wanted.mean)))


def surrogate(
    key: Key[Array, ""],
    x: Batch,
    features: Callable[[Image], Float[Array, " features"]],
    lead: Lead,
    wanted: Moments,
) -> tuple[Float[Array, ""], Float[Array, "n features"]]:
    """Return what has the gradient of half the Fréchet distance of the moments, and the features of `x`.

    The gradient of `|m - m*|^2 + tr(S + S* - 2 (S S*)^(1/2))` by one of `n` draws' features `u` is
    `2 (u - T(u)) / n`, with `T(u) = m* + A (u - m)` the optimal map between the normal laws of these moments.
    A batch is too small for moments of its own, so those in `T` are averages over many steps.
    """
    u = jax.vmap(features)(noisy(key, x, *LEVELS)[0])
    at = jax.lax.stop_gradient(u)
    there = wanted.mean + (at - lead.moments.mean) @ lead.matrix
    return jnp.mean(jnp.sum(u * (at - there), axis=-1)), at


def followed(
    lead: Lead, u: Float[Array, "n features"], wanted: Moments, step: Int[Array, ""], keep: float
) -> Lead:
    """Return the lead after a batch with the features `u`; every so often with a new map."""
    mean, second = lead.moments
    moments = Moments(
        keep * mean + (1.0 - keep) * jnp.mean(u, axis=0), keep * second + (1.0 - keep) * (u.T @ u / len(u))
    )
    matrix = jax.lax.cond(step % EVERY == 0, lambda: optimal_matrix(moments, wanted), lambda: lead.matrix)
    return Lead(moments, matrix)


def optimal_matrix(moments: Moments, wanted: Moments) -> Float[Array, "features features"]:
    """Return `A = S^(-1/2) (S^(1/2) S* S^(1/2))^(1/2) S^(-1/2)`, by which covariance `S` becomes `S*`."""
    values, vectors = jnp.linalg.eigh(moments.covariance)
    root = jnp.sqrt(jnp.maximum(values, RIDGE))
    half, inverse = (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
    values, vectors = jnp.linalg.eigh(half @ wanted.covariance @ half)
    middle = (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T
    return inverse @ middle @ inverse


def _seen(net: UNet, x: Image) -> Float[Array, " seen"]:
    return net.down(x)[-1].reshape(-1)


def looks(
    key: Key[Array, ""],
    see: Callable[[Image], Float[Array, " seen"]],
    images: UInt8[np.ndarray, "n height width"],
    levels: tuple[float, float],
) -> Float[np.ndarray, "n seen"]:
    """Return what is seen in images under noise of these levels, piece by piece."""
    parts = [images[i : i + PIECE] for i in range(0, len(images), PIECE)]
    keys = jax.random.split(key, len(parts))
    return np.concatenate(
        [np.asarray(_look(k, see, jax.device_put(p), levels)) for k, p in zip(keys, parts, strict=True)]
    )


@eqx.filter_jit
def _look(key, see, images, levels):
    x = images.astype(jnp.float32)[..., None] / 255.0
    return jax.vmap(see)(noisy(key, x, *levels)[0])
