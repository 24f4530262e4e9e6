"""What a sampler with a noise head knows of itself and of its target: density, weights, ELBO, `log Z`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pushforward.base import Target, aligned
from pushforward.checks import check_count, check_key
from pushforward.frame import InFrame
from pushforward.latents import Latent
from pushforward.sampler import Sampler
from reproduce.noise.guide import Guide, guide_from
from reproduce.noise.head import NoiseHead, parts_of
from reproduce.noise.weighed import Evidence

PAIRS = 8192  # draws that the guide's linear guess is fitted to


def evidence(
    key: Key[Array, ""], sampler: Sampler, target: Target, *, num_draws: int = 4096, num_latents: int = 16
) -> Evidence:
    """Weigh draws of a sampler with a noise head against the target.

        w = q(u) / p_K(u),   p_K(u) = 1/(K+1) sum_k p(z_k) p(u | z_k) / r(z_k | u)

    with `z_0` the latent that `u` was made from and `z_1 .. z_K` from the guide `r`. Because `z_0` is among
    them, `E[1 / p_K(u) | u] = 1 / p(u)` exactly, for every `K`: the mean of `w` is an unbiased estimate of
    `Z`, and `E log p_K >= log p`, so that the ELBO is never flattered.

    **Arguments:**

    - `key`: a typed key.
    - `sampler`: from `add_noise`, or trained with a `NoiseHead`.
    - `target`: what it was trained for.
    - `num_draws`: weights; the error of `log Z` falls with its root.
    - `num_latents`: `K`, which sharpens every single weight.
    """
    check_key(key)
    head, prior = parts_of(sampler)
    num_draws, num_latents = check_count(num_draws, "num_draws"), check_count(num_latents, "num_latents")
    key_guide, key_draws, key_latents = jax.random.split(key, 3)
    guide = _guide(head, prior, sampler.latent.sample(key_guide, PAIRS))
    latents = sampler.latent.sample(key_draws, num_draws)
    keys = jax.random.split(key_latents, num_draws)
    u, log_p = _own(guide, keys, latents, num_latents)
    log_q = _values(InFrame(aligned(target, sampler.parameters), sampler.frame), u)
    x = jax.vmap(sampler.frame)(u)
    w = np.asarray(log_q, np.float64) - np.asarray(log_p, np.float64)
    # A draw where the target has no mass, or none that can be computed, has the weight zero.
    return Evidence(np.asarray(x), np.where(np.isfinite(w), w, -np.inf), num_latents)


def log_density(
    key: Key[Array, ""], sampler: Sampler, x: Float[Array, "n dim"], *, num_latents: int = 64
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Estimate `log p(x)` of a sampler with a noise head at any points, with standard errors.

    Latents come from the guide alone, so that the estimate of `p(x)` is unbiased and that of its log
    consistent. An error above about 0.5 means that no latent was found which makes the point.
    """
    check_key(key)
    head, prior = parts_of(sampler)
    key_guide, key_latents = jax.random.split(key)
    guide = _guide(head, prior, sampler.latent.sample(key_guide, PAIRS))
    keys = jax.random.split(key_latents, x.shape[0])
    u = jax.vmap(sampler.frame.inverse)(x)
    values, errors = _anywhere(guide, keys, u, check_count(num_latents, "num_latents", at_least=2))
    return values - jax.vmap(sampler.frame.log_det)(u), errors


@eqx.filter_jit
def _guide(head: NoiseHead, prior: Latent, latents: Float[Array, "n latent"]) -> Guide:
    return guide_from(head, prior, latents[:, : head.map_size], jax.vmap(head)(latents))


@eqx.filter_jit
def _own(
    guide: Guide, keys: Key[Array, " n"], latents: Float[Array, "n latent"], num_latents: int
) -> tuple[Float[Array, "n dim"], Float[Array, " n"]]:
    def one(both):
        key, latent = both
        u = guide.head(latent)
        own = latent[None, : guide.head.map_size]
        return u, logsumexp(_terms(guide, key, u, own, num_latents)) - jnp.log(num_latents + 1)

    return jax.lax.map(one, (keys, latents), batch_size=256)


@eqx.filter_jit
def _anywhere(
    guide: Guide, keys: Key[Array, " n"], u: Float[Array, "n dim"], num_latents: int
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    def one(both):
        key, point = both
        terms = _terms(guide, key, point, jnp.zeros((0, guide.head.map_size)), num_latents)
        share = jnp.exp(terms - jnp.max(terms))
        error = jnp.std(share, ddof=1) / jnp.mean(share) / jnp.sqrt(num_latents)
        return logsumexp(terms) - jnp.log(num_latents), error

    return jax.lax.map(one, (keys, u), batch_size=256)


def _terms(
    guide: Guide, key: Key[Array, ""], u: Float[Array, " dim"], own: Float[Array, "owns map"], count: int
) -> Float[Array, " all"]:
    """Return `log p(z) p(u | z) / r(z | u)` of the latents in `own` and of `count` proposed ones."""
    z, log_r = guide.propose(key, u, own, count)
    prior, head = guide.prior, guide.head
    log_joint = jax.vmap(lambda point: prior.log_density(point) + head.log_conditional(u, point))(z)
    return log_joint - log_r


@eqx.filter_jit
def _values(target: Target, u: Float[Array, "n dim"]) -> Float[Array, " n"]:
    return jax.lax.map(target.log_density, u, batch_size=1024)
