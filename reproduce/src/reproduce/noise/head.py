"""A map with a little noise at its end: draws whose density can be estimated, whatever the map is."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Key

from pushforward.checks import check_key, check_positive
from pushforward.latents import IndependentMixtures, Latent, Normal, NormalMixture
from pushforward.networks import MLP, mlp
from pushforward.sampler import Sampler

LOG_LIMITS = (-12.0, 4.0)
"""Of `log sigma`: its square must not vanish in single precision, nor the noise drown the frame."""


class NoiseHead(eqx.Module):
    """`u = g(z) + sigma(z) * eps` with `eps ~ N(0, I)`: the latent is `(z, eps)`, `log sigma` an MLP of `z`.

    Given `z` a draw is normal, so that `log p(u | z)` and its score are closed forms, and the density
    `p(u) = E_z p(u | z)` can be estimated by averages over latents; a bare map of more latents than
    coordinates, or one that folds, has a density that nobody can compute.
    """

    network: Any
    log_scale: MLP

    no_density: ClassVar[str] = (
        "the density of a sampler with a noise head is an average over latents, which has no closed "
        "form; `reproduce.noise.log_density(key, sampler, x)` estimates it at a batch of points."
    )
    """What `Sampler.log_density` says."""

    def __check_init__(self):
        sizes = [(net.in_size, net.out_size) for net in (self.log_scale, self.network)]
        if sizes[0] != sizes[1]:
            raise ValueError("the noise of a NoiseHead must have the sizes of the map it is added to.")

    @property
    def map_size(self) -> int:
        """Coordinates of `z`."""
        return self.network.in_size

    @property
    def in_size(self) -> int:
        """Coordinates of `(z, eps)`."""
        return self.network.in_size + self.network.out_size

    @property
    def out_size(self) -> int:
        """Coordinates of a draw."""
        return self.network.out_size

    def sigma(self, z: Float[Array, " map"]) -> Float[Array, " dim"]:
        """Return the noise's standard deviation in every coordinate."""
        return jnp.exp(jnp.clip(self.log_scale(z), *LOG_LIMITS))

    def __call__(self, latent: Float[Array, " latent"]) -> Float[Array, " dim"]:
        """Map `(z, eps)` to a draw."""
        z, eps = latent[: self.map_size], latent[self.map_size :]
        return self.network(z) + self.sigma(z) * eps

    def log_conditional(self, u: Float[Array, " dim"], z: Float[Array, " map"]) -> Float[Array, ""]:
        """Return `log p(u | z) = log N(u; g(z), sigma(z)^2)`."""
        return norm.logpdf(u, self.network(z), self.sigma(z)).sum()

    def conditional_score(self, u: Float[Array, " dim"], z: Float[Array, " map"]) -> Float[Array, " dim"]:
        """Return the gradient of `log p(u | z)` in `u`, `-(u - g(z)) / sigma(z)^2`.

        Averaged over the latents that `u` may have come from it is the sampler's own score.
        """
        return (self.network(z) - u) / self.sigma(z) ** 2


def noise_head(key: Key[Array, ""], network: Any, sigma: float = 0.05, *, width: int = 32) -> NoiseHead:
    """Put noise of constant size `sigma`, in the frame's units, at the end of `network`; it may be trained.

    **Arguments:**

    - `key`: for the hidden weights of the noise's MLP; its last layer starts at zero.
    - `network`: any map with `in_size` and `out_size`.
    - `sigma`: the standard deviation to start with. Small enough not to blur the target, large enough that
        the latents near a draw can be found.
    - `width`: of the MLP's one hidden layer.
    """
    level = jnp.log(check_positive(sigma, "sigma"))
    net = mlp(key, network.in_size, network.out_size, width=width, depth=1, zero_last=True)
    biases = (*net.biases[:-1], jnp.full(network.out_size, level))
    return NoiseHead(network, MLP(net.weights, biases, net.activation, net.skip))


def add_noise(key: Key[Array, ""], sampler: Sampler, sigma: float = 0.05) -> Sampler:
    """Return the sampler with a noise head of constant size at its end, in the units of its frame.

    **Arguments:**

    - `key`: for the weights that a later training of the noise would use.
    - `sampler`: with normal latents or a mixture of normals.
    - `sigma`: small beside the target's finest structure, of which the frame's unit is the whole.
    """
    check_key(key)
    if isinstance(sampler.network, NoiseHead):
        raise ValueError(  # noqa: TRY004 (of the right type, and once too often)
            "`sampler` has a noise head already; `sampler.network.network` is the map without it."
        )
    head = noise_head(key, sampler.network, sigma)
    latent = _with_noise(sampler.latent, sampler.dim)
    return Sampler(latent, head, sampler.frame, sampler.about_json, sampler.parameters)


def _with_noise(latent: Latent, dim: int) -> Latent:
    """Return the law of `(z, eps)`."""
    if isinstance(latent, Normal):
        return Normal(latent.dim + dim)
    if isinstance(latent, NormalMixture):
        k, size = latent.means.shape
        means = jnp.concatenate([latent.means, jnp.zeros((k, dim))], axis=1)
        factors = jnp.zeros((len(latent.choleskys), size + dim, size + dim))
        factors = factors.at[:, :size, :size].set(latent.choleskys)
        factors = factors.at[:, size:, size:].set(jnp.eye(dim))
        return NormalMixture(latent.weights, means, factors)
    if isinstance(latent, IndependentMixtures):
        # A standard normal is a mixture of any number of itself.
        shape = (dim, latent.means.shape[1])
        more = jnp.full(shape, 1.0 / shape[1]), jnp.zeros(shape), jnp.ones(shape)
        fields = latent.weights, latent.means, latent.scales
        return IndependentMixtures(*(jnp.concatenate(both) for both in zip(fields, more, strict=True)))
    raise TypeError(
        f"`sampler` must have normal latents or a mixture of normals for a noise head; "
        f"got {type(latent).__name__}."
    )


def parts_of(sampler: Sampler) -> tuple[NoiseHead, Latent]:
    """Return the head of a sampler that has one, and the law of the latents of the map it is added to."""
    if not isinstance(sampler, Sampler) or not isinstance(sampler.network, NoiseHead):
        raise TypeError(
            "`sampler` must have a noise head, which makes its density known; "
            "`add_noise(key, sampler)` returns one that has."
        )
    head, latent, size = sampler.network, sampler.latent, sampler.network.map_size
    if isinstance(latent, NormalMixture):
        return head, NormalMixture(latent.weights, latent.means[:, :size], latent.choleskys[:, :size, :size])
    if isinstance(latent, IndependentMixtures):
        return head, IndependentMixtures(latent.weights[:size], latent.means[:size], latent.scales[:size])
    return head, Normal(size)
