"""What is handed back where no map is good enough: particles, each a Langevin step wide.

Laws with symmetries, such as those of particles that may turn and change places, lie along thin shells that
no mixture of a few normals and no map that keeps its neighbours together can follow. Tempered particles can.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.latents import Latent, NormalMixture
from pushforward.training.exchange import exchanged

MOST, MOST_DIM = 16384, 128
"""Particles that are kept at most, and the dimensions up to which they are: beyond, tempered particles are
few for what they should show."""

DROP = 0.01
"""Nats a coordinate by which steps may lower the mean log density."""

SIZES = tuple(float(h) for h in np.geomspace(0.5, 0.005, 14))
"""Sizes of steps that are tried, in the frame's units, the longest first."""

WORST = 20.0
"""Nats by which one point may count as lower: a single one outside the support must not decide."""

LOW, LOWER = 0.5, 0.05
"""Nats, at all and in each coordinate, by which a map's draws must lie lower than particles to be given
up."""

LOOKS = 4096


def can_scatter(dim: int) -> bool:
    """Whether particles can stand for a law in so many dimensions."""
    return 1 < dim <= MOST_DIM


def is_low(below: float, dim: int) -> bool:
    """Whether draws so many nats below particles, by their medians, lie much lower; not a number is."""
    return not below <= LOW + LOWER * dim


def lies_low(
    key: Key[Array, ""], target: Target, latent: Latent, network: eqx.Module, draws: Float[Array, "m dim"]
) -> bool:
    """Whether a map's draws lie where the density is much lower than at the teacher's, by their medians."""
    key_ours, key_theirs = jax.random.split(key)
    z = latent.sample(key_ours, LOOKS)
    ours = heights(target, jax.vmap(network)(z))  # pyright: ignore[reportArgumentType]
    theirs = jnp.median(heights(target, some(key_theirs, draws, LOOKS)))
    # Draws that are nowhere are nothing to come back to.
    return bool(jnp.isfinite(theirs)) and is_low(float(theirs - jnp.median(ours)), target.dim)


def scattered(
    key: Key[Array, ""], target: Target, draws: Float[Array, "m dim"], deadline: float = float("inf")
) -> NormalMixture:
    """Return equal normals around the points to which a Langevin step's drift takes particles.

    `x + h^2 score(x) / 2 + h N(0, I)`, with the longest `h` that hardly lowers the log density. The drift
    makes up for what the noise adds, so that a step may be longer than plain noise could be wide. The
    particles are the teacher's, gone on by replica exchange.
    """
    dim = target.dim
    key_points, key_steps, key_walk = jax.random.split(key, 3)
    within = draws[jnp.isfinite(heights(target, draws))]
    points = some(key_points, exchanged(key_walk, target, within, deadline), MOST)
    before = heights(target, points)
    scores = jax.lax.map(jax.grad(target.log_density), points, batch_size=1024)
    scores = jnp.where(jnp.isfinite(scores), scores, 0.0)
    eps = jax.random.normal(key_steps, points.shape)

    def centres(size: float) -> Float[Array, "n dim"]:
        return points + 0.5 * size**2 * scores

    def is_gentle(size: float) -> bool:
        fallen = before - heights(target, centres(size) + size * eps)
        return bool(jnp.mean(jnp.clip(fallen, -WORST, WORST)) <= DROP * dim)

    size = next((size for size in SIZES if is_gentle(size)), SIZES[-1])
    return NormalMixture(jnp.full(len(points), 1.0 / len(points)), centres(size), size * jnp.eye(dim)[None])


def some(key: Key[Array, ""], draws: Float[Array, "m dim"], count: int) -> Float[Array, "_n dim"]:
    """Return so many of the draws, any: those that follow each other are states of few particles."""
    return draws[jax.random.permutation(key, len(draws))[:count]]


@eqx.filter_jit
def heights(target: Target, x: Float[Array, "n dim"]) -> Float[Array, " n"]:
    """Return log densities; what is not finite is as low as can be."""
    found = jax.lax.map(target.log_density, x, batch_size=1024)
    return jnp.where(jnp.isfinite(found), found, -jnp.inf)
