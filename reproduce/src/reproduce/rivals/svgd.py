"""Stein variational gradient descent: particles that attract to the target and repel each other.

BlackJAX has an SVGD, but not this one: its bandwidth leaves out the diagonal, uses `log n`, lags
one step behind the particles, and starts from a default that a first run changes for all later
ones. What the paper ran (facts 3.2) is Liu and Wang's code, which is below.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from pushforward.kernels import RBF, median_bandwidth
from reproduce.rivals.chains import pick, rms, start

DECAY, FUDGE = 0.9, 1e-6


class Particles(NamedTuple):
    """The particles, the running mean square of their direction, and how many steps were taken."""

    position: Float[Array, "n dim"]
    square: Float[Array, "n dim"]
    steps: Int[Array, ""]


def algorithm(
    target: Target,
    num_particles: int = 500,
    step_size: float = 0.01,
    initial_scale: float = 0.1,
    *,
    adaptive: bool = True,
) -> Algorithm:
    """Return SVGD with the median bandwidth.

        phi_i = 1/n sum_j [ k(x_j, x_i) s(x_j) + k(x_j, x_i) (x_i - x_j) / h^2 ]
        G     = phi^2 at first, then 0.9 G + 0.1 phi^2
        x    <- x + eps phi / (1e-6 + sqrt(G))

    The original calls this AdaGrad; it is closer to RMSProp, except for its first step.

    **Arguments:**

    - `num_particles`: each is one draw, though not an independent one.
    - `step_size`: `eps`.
    - `initial_scale`: particles start at `N(0, initial_scale^2 I)`.
    - `adaptive`: without it, `x <- x + eps phi`, which is far from done after 500 steps.
    """
    descent = _Descent(
        target,
        step_size=jnp.asarray(check_positive(step_size, "step_size")),
        initial_scale=jnp.asarray(check_positive(initial_scale, "initial_scale")),
        num_particles=check_count(num_particles, "num_particles", at_least=2),
        adaptive=adaptive,
    )
    return Algorithm(descent.init, descent.step, _sample)


def direction(
    x: Float[Array, "n dim"], score: Float[Array, "n dim"], bandwidth: Float[Array, ""]
) -> Float[Array, "n dim"]:
    """Return `phi`, the direction in which each particle moves."""
    gram = RBF(bandwidth).gram(x, x)
    # sum_j k_ij (x_i - x_j), as products of matrices: the table of differences is never made.
    repulsion = jnp.sum(gram, axis=1, keepdims=True) * x - gram @ x
    return (gram @ score + repulsion / bandwidth**2) / x.shape[0]


class _Descent(eqx.Module):
    target: Target
    step_size: Float[Array, ""]
    initial_scale: Float[Array, ""]
    num_particles: int = eqx.field(static=True)
    adaptive: bool = eqx.field(static=True)

    def init(self, key: Key[Array, ""]) -> Particles:
        position = start(key, self.num_particles, self.target.dim, self.initial_scale)
        return Particles(position, jnp.zeros_like(position), jnp.zeros((), int))

    def step(self, key: Key[Array, ""], state: Particles) -> tuple[Particles, dict[str, Any]]:
        del key  # the particles move without noise
        x, bandwidth = state.position, median_bandwidth(state.position)
        phi = direction(x, jax.vmap(self.target.score)(x), bandwidth)
        square = jnp.where(state.steps == 0, phi**2, DECAY * state.square + (1 - DECAY) * phi**2)
        move = phi / (FUDGE + jnp.sqrt(square)) if self.adaptive else phi
        moved = Particles(x + self.step_size * move, square, state.steps + 1)
        return moved, {"direction_norm": rms(phi), "bandwidth": bandwidth}


def _sample(key: Key[Array, ""], state: Particles, n: int) -> Float[Array, "n dim"]:
    return pick(key, state.position, n)
