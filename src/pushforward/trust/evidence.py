"""What a sampler with a noise head knows of itself and of its target: density, weights, ELBO, `log Z`."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Key

from pushforward.base import Target, aligned
from pushforward.checks import check_count, check_key
from pushforward.frame import InFrame
from pushforward.latents import IndependentMixtures, Latent, Normal, NormalMixture
from pushforward.networks import NoiseHead
from pushforward.networks.noise_head import noise_head
from pushforward.sampler import Sampler
from pushforward.trust.guide import Guide, guide_from
from pushforward.trust.importance import pareto_shape
from pushforward.trust.settings import LIMITS

PAIRS = 8192
"""Draws that the guide's linear guess is fitted to."""

Z95 = 1.959964


@dataclass(frozen=True)
class Evidence:
    """Importance weights of a sampler's draws, and what follows from them."""

    draws: Float[np.ndarray, "n dim"]
    log_weights: Float[np.ndarray, " n"]
    """`log q(x) - log p(x)`, the second estimated; the weights themselves are unbiased."""
    num_latents: int

    @property
    def elbo(self) -> tuple[float, float]:
        """`E[log q(x) - log p(x)]`, at most `log Z`, and its standard error."""
        w = self.log_weights
        if not np.isfinite(w).all():
            # Some draws have no target density at all, and the divergence is infinite.
            return float("-inf"), float("inf")
        return float(w.mean()), float(w.std(ddof=1) / np.sqrt(len(w)))

    @property
    def log_z(self) -> float:
        """The log of the mean weight: `log Z` of the target, as its log density is written."""
        return float(logsumexp_np(self.log_weights) - np.log(len(self.log_weights)))

    @property
    def log_z_error(self) -> float:
        """The standard error of `log_z`, as far as the weights that were seen tell it."""
        share = np.exp(self.log_weights - self.log_weights.max())
        return float(share.std(ddof=1) / share.mean() / np.sqrt(len(share)))

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % interval of `log Z`; to be believed where `k` is at most 0.7."""
        return self.log_z - Z95 * self.log_z_error, self.log_z + Z95 * self.log_z_error

    @property
    def efficiency(self) -> float:
        """The effective share of the draws: one for an exact sampler."""
        w = self.log_weights
        return float(np.exp(2 * logsumexp_np(w) - logsumexp_np(2 * w)) / len(w))

    @property
    def k(self) -> float:
        """The Pareto shape of the largest weights; above 0.7 no average over them can be believed."""
        return pareto_shape(self.log_weights)

    def resample(self, key: Key[Array, ""], num_samples: int) -> Float[np.ndarray, "n dim"]:
        """Return draws chosen by weight: what the sampler gets wrong, above all mode weights, put right.

        Systematic resampling: a draw of twice the weight is chosen twice as often. More than
        `efficiency * n` of them are mostly repeats.
        """
        check_key(key)
        num_samples = check_count(num_samples, "num_samples")
        if not self.k <= LIMITS.max_k:
            raise ValueError(
                f"the weights cannot be believed: Pareto shape {self.k:.2f}, above {LIMITS.max_k}. Train the "
                "sampler further, or give its head more noise, before resampling."
            )
        share = np.exp(self.log_weights - logsumexp_np(self.log_weights))
        places = (np.arange(num_samples) + float(jax.random.uniform(key))) / num_samples
        rows = np.minimum(np.searchsorted(np.cumsum(share), places), len(share) - 1)
        return self.draws[rows]


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
    head, prior = _parts(sampler)
    num_draws, num_latents = check_count(num_draws, "num_draws"), check_count(num_latents, "num_latents")
    key_guide, key_draws, key_latents = jax.random.split(key, 3)
    guide = _guide(key_guide, head, prior, sampler.latent)
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
    head, prior = _parts(sampler)
    key_guide, key_latents = jax.random.split(key)
    guide = _guide(key_guide, head, prior, sampler.latent)
    keys = jax.random.split(key_latents, x.shape[0])
    u = jax.vmap(sampler.frame.inverse)(x)
    values, errors = _anywhere(guide, keys, u, check_count(num_latents, "num_latents", at_least=2))
    return values - jax.vmap(sampler.frame.log_det)(u), errors


def _parts(sampler: Sampler) -> tuple[NoiseHead, Latent]:
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


def _guide(key: Key[Array, ""], head: NoiseHead, prior: Latent, latent: Latent) -> Guide:
    pairs = latent.sample(key, PAIRS)
    return _fit_guide(head, prior, pairs)


@eqx.filter_jit
def _fit_guide(head: NoiseHead, prior: Latent, latents: Float[Array, "n latent"]) -> Guide:
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
    guide: Guide,
    key: Key[Array, ""],
    u: Float[Array, " dim"],
    own: Float[Array, "owns map"],
    num_latents: int,
) -> Float[Array, " all"]:
    """Return `log p(z) p(u | z) / r(z | u)` of the latents in `own` and of proposed ones."""
    z, log_r = guide.propose(key, u, own, num_latents)
    log_joint = jax.vmap(lambda point: guide.prior.log_density(point) + guide.head.log_conditional(u, point))(
        z
    )
    return log_joint - log_r


@eqx.filter_jit
def _values(target: Target, u: Float[Array, "n dim"]) -> Float[Array, " n"]:
    return jax.lax.map(target.log_density, u, batch_size=1024)


def logsumexp_np(values: Float[np.ndarray, " n"]) -> float:
    """Return `log sum exp` in double precision on the host."""
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum()))
