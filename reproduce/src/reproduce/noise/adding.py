"""A sampler with a noise head: how one is made of any other, and the law of its map's own latents."""

import jax.numpy as jnp
from jaxtyping import Array, Key

from pushforward.checks import check_key
from pushforward.latents import IndependentMixtures, Latent, Normal, NormalMixture
from pushforward.sampler import Sampler
from reproduce.noise.head import NoiseHead, noise_head


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
    head, latent = sampler.network, sampler.latent
    size = head.map_size
    if isinstance(latent, NormalMixture):
        return head, NormalMixture(latent.weights, latent.means[:, :size], latent.choleskys[:, :size, :size])
    if isinstance(latent, IndependentMixtures):
        return head, IndependentMixtures(latent.weights[:size], latent.means[:size], latent.scales[:size])
    return head, Normal(size)
