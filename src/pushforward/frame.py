"""A frame: fixed coordinates in which the target is roughly standard, so that no net sees its units."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Target


class Frame(eqx.Module):
    """`x = centre + scale * sinh(bend * v) / bend` with `v = shift + matrix @ u`, coordinate by coordinate.

    `bend = 0` is the straight limit (`x = centre + scale * v`); a positive `bend` gives a coordinate
    the tails of an exponentiated normal. `matrix` is lower triangular with a positive diagonal.
    """

    centre: Float[Array, " dim"]
    scale: Float[Array, " dim"]
    bend: Float[Array, " dim"]
    shift: Float[Array, " dim"]
    matrix: Float[Array, "dim dim"]

    def __check_init__(self):
        dim = self.centre.shape[0]
        shapes = {self.scale.shape, self.bend.shape, self.shift.shape}
        if shapes != {(dim,)} or self.matrix.shape != (dim, dim):
            raise ValueError("centre, scale, bend, shift and matrix of a Frame must agree in size.")

    @property
    def dim(self) -> int:
        """Coordinates of a point."""
        return self.centre.shape[0]

    @staticmethod
    def identity(dim: int) -> "Frame":
        """Return the frame that changes nothing."""
        zero, one = jnp.zeros(dim), jnp.ones(dim)
        return Frame(centre=zero, scale=one, bend=zero, shift=zero, matrix=jnp.eye(dim))

    def __call__(self, u: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Map one point out of the frame."""
        v = self.shift + self.matrix @ u
        return self.centre + self.scale * bent(v, self.bend)

    def inverse(self, x: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Map one point into the frame."""
        v = unbent((x - self.centre) / self.scale, self.bend)
        return jnp.linalg.solve(self.matrix, v - self.shift)

    def log_det(self, u: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `log |det dx/du|`."""
        v = self.shift + self.matrix @ u
        # log cosh without overflow.
        h = jnp.abs(self.bend * v)
        log_cosh = h + jnp.log1p(jnp.exp(-2.0 * h)) - jnp.log(2.0)
        return jnp.sum(jnp.log(self.scale) + log_cosh + jnp.log(jnp.diagonal(self.matrix)))


def bent(v: Float[Array, "*n dim"], bend: Float[Array, " dim"]) -> Float[Array, "*n dim"]:
    """Return `sinh(bend v) / bend`, and `v` where the bend is zero."""
    safe = jnp.where(bend != 0, bend, 1.0)
    return jnp.where(bend != 0, jnp.sinh(safe * v) / safe, v)


def unbent(w: Float[Array, "*n dim"], bend: Float[Array, " dim"]) -> Float[Array, "*n dim"]:
    """Invert `bent`."""
    safe = jnp.where(bend != 0, bend, 1.0)
    return jnp.where(bend != 0, jnp.arcsinh(safe * w) / safe, w)


class InFrame(Target):
    """A target seen through a frame: `log q(frame(u)) + log |det dframe/du|`."""

    target: Target
    frame: Frame
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(self, target: Target, frame: Frame):
        """See `target` through `frame`."""
        self.target, self.frame = target, frame
        self.dim, self.name = target.dim, target.name

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log density in the frame's coordinates."""
        return self.target.log_density(self.frame(x)) + self.frame.log_det(x)
