"""What targets have in common: fields, grids, and a law on an interval where no formula gives draws."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target, Window


class Known(Target):
    """A target that has its number of coordinates and its name as fields."""

    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)


class GridLaw(eqx.Module):
    """The law on `[low, high]` whose density is linear between the nodes of a fine, even grid.

    With `h` the spacing, the density is off by `h^2 f'' / 8` at most, here a few millionths of its height:
    less than a million draws show. Draws invert `F(x) = u` and solve the quadratic inside a cell exactly.
    """

    nodes: Float[Array, " m"]
    density: Float[Array, " m"]
    cdf: Float[Array, " m"]
    log_z: Float[Array, ""]

    def __init__(
        self,
        density: Callable[[Float[np.ndarray, " m"]], Float[np.ndarray, " m"]],
        low: float,
        high: float,
        num_cells: int = 8192,
    ):
        """Tabulate `density`, an un-normalised density of NumPy arrays, negligible outside.

        The sums run in double precision on the host, whatever the precision of the draws.
        """
        nodes = np.linspace(low, high, num_cells + 1)
        heights = density(nodes)
        cells = 0.5 * (heights[1:] + heights[:-1]) * (high - low) / num_cells
        cdf = np.concatenate([[0.0], np.cumsum(cells)])
        self.nodes = jnp.asarray(nodes)
        self.density = jnp.asarray(heights / cdf[-1])
        self.cdf = jnp.asarray(cdf / cdf[-1])
        self.log_z = jnp.asarray(np.log(cdf[-1]))

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, " n"]:
        """Draw `num_samples` independent points."""
        key_cell, key_place = jax.random.split(key)
        u = jax.random.uniform(key_cell, (num_samples,), self.cdf.dtype)
        # Uniforms are multiples of epsilon and may be 0, which would point at the far end of the
        # lower tail; half a step to the right keeps them inside (0, 1) and centred.
        u = u + 0.5 * jnp.finfo(u.dtype).eps
        cell = jnp.searchsorted(self.cdf, u, side="right") - 1
        # A second uniform places the point within its cell: one alone has only 2^23 values.
        v = jax.random.uniform(key_place, (num_samples,), self.cdf.dtype)
        left, right = self.density[cell], self.density[cell + 1]
        share = v * (left + right) / (left + jnp.sqrt(left**2 + v * (right**2 - left**2)))
        return self.nodes[cell] + share * (self.nodes[cell + 1] - self.nodes[cell])

    def expectation(
        self, fn: Callable[[Float[np.ndarray, " m"]], Float[np.ndarray, "m *shape"]]
    ) -> Float[np.ndarray, "*shape"]:
        """Return `E fn(x)` by the trapezoidal rule, on the host; `fn` takes all nodes at once."""
        nodes, weights = np.asarray(self.nodes, np.float64), np.array(self.density, np.float64)
        weights[[0, -1]] /= 2
        return np.tensordot(weights / weights.sum(), np.asarray(fn(nodes), np.float64), axes=1)


def log_densities(target: Target, window: Window, side: int) -> Float[np.ndarray, "side side"]:
    """Return the log density of two coordinates on an even grid over a window, rows from bottom to top."""
    x, y = (jnp.linspace(low, high, side) for low, high in window)
    points = jnp.stack(jnp.meshgrid(x, y), axis=-1)
    return np.asarray(jax.jit(jax.vmap(jax.vmap(target.log_density)))(points))
