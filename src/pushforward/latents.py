"""The easy laws that a sampler pushes forward: each can be drawn, evaluated, and fed with uniforms."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp, ndtri
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, Key

from pushforward import bits
from pushforward.checks import check_count

_EDGE = 2.0**-24  # uniforms are kept off 0 and 1, where the normal quantile is infinite, by float32's grain

FEW_PARTS, FEW_DIMENSIONS = 512, 64
"""Components up to which looking at all of them is the fastest way to find one; and dimensions up to which
every draw may have a factor of its own in memory."""


def _to_normal(u: Float[Array, "..."]) -> Float[Array, "..."]:
    return ndtri(jnp.clip(u, _EDGE, 1.0 - _EDGE))


class Latent(eqx.Module):
    """A law of latents `z`."""

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """Coordinates of a latent."""

    @property
    def num_uniforms(self) -> int:
        """How many uniforms make one latent: one a coordinate, unless a law says otherwise."""
        return self.dim

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n latent"]:
        """Draw latents."""

    @abc.abstractmethod
    def from_uniform(self, u: Float[Array, " uniforms"]) -> Float[Array, " latent"]:
        """Map one point of the unit cube to a latent, preserving the law."""

    @abc.abstractmethod
    def log_density(self, z: Float[Array, " latent"]) -> Float[Array, ""]:
        """Return the normalised log density of one latent."""


class _Alike(Latent):
    """Independent coordinates that all have the same law."""

    size: int = eqx.field(static=True, converter=lambda size: check_count(size, "size"))

    @property
    def dim(self) -> int:
        """Coordinates of a latent."""
        return self.size


class Normal(_Alike):
    """Standard normal latents."""

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n latent"]:
        """Draw latents."""
        return bits.uniform_and_normal(key, num_samples, self.dim)[1].astype(float)

    def from_uniform(self, u: Float[Array, " uniforms"]) -> Float[Array, " latent"]:
        """Map by the normal quantile."""
        return _to_normal(u)

    def log_density(self, z: Float[Array, " latent"]) -> Float[Array, ""]:
        """Return `log N(z; 0, I)`."""
        return norm.logpdf(z).sum()


class Uniform(_Alike):
    """Uniform latents on `(-1, 1)^dim`."""

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n latent"]:
        """Draw latents."""
        return 2.0 * bits.uniform_and_normal(key, num_samples, self.dim)[0].astype(float) - 1.0

    def from_uniform(self, u: Float[Array, " uniforms"]) -> Float[Array, " latent"]:
        """Stretch the cube."""
        return 2.0 * u - 1.0

    def log_density(self, z: Float[Array, " latent"]) -> Float[Array, ""]:
        """Return `-dim log 2` inside the cube."""
        inside = jnp.all(jnp.abs(z) <= 1.0)
        return jnp.where(inside, -self.dim * jnp.log(2.0), -jnp.inf)


class NormalMixture(Latent):
    """A mixture of normals with full covariances: separated modes need no bridges between them."""

    weights: Float[Array, " k"]
    means: Float[Array, "k latent"]
    choleskys: Float[Array, "shapes latent latent"]  # one a component, or one for all

    def __check_init__(self):
        k, dim = self.means.shape
        if self.weights.shape != (k,) or self.choleskys.shape not in ((k, dim, dim), (1, dim, dim)):
            raise ValueError("weights, means and choleskys of a NormalMixture must agree in size.")

    @property
    def dim(self) -> int:
        """Coordinates of a latent."""
        return self.means.shape[1]

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n latent"]:
        """Draw a component, then a normal."""
        u, eps = bits.uniform_and_normal(key, num_samples, self.dim)
        chosen = jax.vmap(lambda u: _part(self.weights, u)[0])(u[:, 0])
        if len(self.choleskys) == 1:
            return self.means[chosen] + eps @ self.choleskys[0].T
        if self.dim > FEW_DIMENSIONS:
            return self._placed(chosen, eps)
        return jax.vmap(lambda k, eps: self.means[k] + self.choleskys[k] @ eps)(chosen, eps)

    def _placed(self, chosen: Int[Array, " n"], eps: Float[Array, "n latent"]) -> Float[Array, "n latent"]:
        """Place normals by one product a component: a factor for each of many draws would fill the memory."""

        def one(z, component):
            k, mean, cholesky = component
            return jnp.where((chosen == k)[:, None], mean + eps @ cholesky.T, z), None

        components = jnp.arange(self.weights.size), self.means, self.choleskys
        return jax.lax.scan(one, eps, components)[0]

    def from_uniform(self, u: Float[Array, " uniforms"]) -> Float[Array, " latent"]:
        """Spend the first uniform on the component, and what is left of it on the first coordinate.

        Components stand in the order of their first coordinate, so that near uniforms go to near places as
        often as can be: what even spacing gains, every jump costs.
        """
        order = jnp.argsort(self.means[:, 0])
        place, rest = _part(self.weights[order], u[0])
        k = order[place]
        if self.weights.size > FEW_PARTS:
            # So little of the uniform is left that its ends are grains, not the tails of a normal.
            grain = jnp.minimum(0.5 * _EDGE * jnp.sum(self.weights) / self.weights[k], 0.5)
            rest = jnp.clip(rest, grain, 1.0 - grain)
        shape = self.choleskys[0] if len(self.choleskys) == 1 else self.choleskys[k]
        return self.means[k] + shape @ _to_normal(u.at[0].set(rest))

    def component_log_densities(self, z: Float[Array, " latent"]) -> Float[Array, " k"]:
        """Return `log w_c + log N(z; m_c, L_c L_c^T)` of every component."""
        k, dim = self.means.shape
        # Inverses first: they do not depend on `z`, so under `vmap` over points they are made once, and
        # all components of all points become one matrix product.
        inverses = jax.vmap(lambda c: solve_triangular(c, jnp.eye(dim, dtype=z.dtype), lower=True))(
            self.choleskys
        )
        if len(inverses) == 1:
            r = (z - self.means) @ inverses[0].T
        else:
            r = (inverses.reshape(k * dim, dim) @ z).reshape(k, dim)
            r = r - jnp.einsum("kij,kj->ki", inverses, self.means)
        log_det = jnp.log(jnp.diagonal(self.choleskys, axis1=1, axis2=2)).sum(1)
        constant = jnp.log(self.weights) - log_det - 0.5 * dim * jnp.log(2.0 * jnp.pi)
        return constant - 0.5 * jnp.sum(r**2, axis=1)

    def log_density(self, z: Float[Array, " latent"]) -> Float[Array, ""]:
        """Return the mixture's log density."""
        return logsumexp(self.component_log_densities(z))


class IndependentMixtures(Latent):
    """Every coordinate on its own, each a mixture of normals on the line.

    Two wells in each of many coordinates make more modes than any list of them could hold.
    """

    weights: Float[Array, "latent k"]
    means: Float[Array, "latent k"]
    scales: Float[Array, "latent k"]

    def __check_init__(self):
        if not self.weights.shape == self.means.shape == self.scales.shape or self.means.ndim != 2:
            raise ValueError("weights, means and scales of IndependentMixtures must agree in size.")

    @property
    def dim(self) -> int:
        """Coordinates of a latent."""
        return self.means.shape[0]

    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n latent"]:
        """Draw the component of every coordinate, then a normal."""
        u, eps = bits.uniform_and_normal(key, num_samples, self.dim)
        return jax.vmap(lambda u, eps: self._place(_parts(self.weights, u)[0], eps))(u, eps)

    def from_uniform(self, u: Float[Array, " uniforms"]) -> Float[Array, " latent"]:
        """Spend each uniform on a component, from left to right, and what is left of it on the normal."""
        order = jnp.argsort(self.means, axis=1)
        places, rest = _parts(jnp.take_along_axis(self.weights, order, 1), u)
        chosen = jnp.take_along_axis(order, places[:, None], 1)[:, 0]
        return self._place(chosen, _to_normal(rest))

    def _place(self, chosen: Int[Array, " latent"], eps: Float[Array, " latent"]) -> Float[Array, " latent"]:
        mean, scale = (jnp.take_along_axis(a, chosen[:, None], 1)[:, 0] for a in (self.means, self.scales))
        return mean + scale * eps

    def component_log_densities(self, z: Float[Array, " latent"]) -> Float[Array, "latent k"]:
        """Return `log(weight_c N(z_i; ...))` for all coordinates and components."""
        return norm.logpdf(z[:, None], self.means, self.scales) + jnp.log(self.weights)

    def log_density(self, z: Float[Array, " latent"]) -> Float[Array, ""]:
        """Return the sum of the coordinates' log densities."""
        return logsumexp(self.component_log_densities(z), axis=1).sum()


def _part(weights: Float[Array, " k"], u: Float[Array, ""]) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """Return which part of `[0, 1]`, cut in the ratio of the weights, `u` falls in, and how far along it."""
    ends = jnp.cumsum(weights)
    at = u * ends[-1]
    method = "compare_all" if weights.size <= FEW_PARTS else "scan"
    k = jnp.minimum(jnp.searchsorted(ends, at, side="right", method=method), weights.size - 1)
    return k, 1.0 - (ends[k] - at) / jnp.maximum(weights[k], jnp.finfo(weights.dtype).tiny)


_parts = jax.vmap(_part)


Mixture = NormalMixture | IndependentMixtures
"""What can be fitted to draws of a target, and be the latent law of a sampler."""


def standard(dim: int) -> NormalMixture:
    """Return the standard normal as a mixture of one."""
    fields = np.ones(1), np.zeros((1, dim)), np.eye(dim)[None]
    return NormalMixture(*(jax.device_put(np.asarray(each, jnp.result_type(float))) for each in fields))
