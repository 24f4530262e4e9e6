"""Thinning: the few of many draws that together stand best for the target, and share its mass as they do."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pushforward.base import Target
from pushforward.checks import check_count, check_positive
from pushforward.kernels import IMQ
from pushforward.metrics.inputs import check_draws


def thin(
    draws: Float[Array, "n dim"], target: Target, num_points: int, *, sweeps: int = 1, balance: float = 1.0
) -> Float[Array, "m dim"]:
    """Return `num_points` of the draws, chosen one by one to keep the KSD of the chosen set lowest.

        i_m = argmin over i of  k0(x_i, x_i) / 2 + sum over chosen j of k0(x_i, x_j)

    (Riabiz et al. 2022), with the kernel of `ksd_imq_v`. What was chosen early was chosen in ignorance of
    the rest, so every chosen point is then, `sweeps` times, taken out and chosen again; each exchange lowers
    the discrepancy or leaves it, and one sweep about halves it. The points are not independent of each other:
    they repel, and a set of 500 scores far below 500 independent exact draws. A draw may be chosen more than
    once, where that helps. Time grows with `n * num_points * (1 + 2 * sweeps)`.

    The KSD hardly sees how mass is shared among modes far apart. So `balance` times the squared MMD between
    the chosen set and the pool is added to the squared KSD, with the same kernel in units of the pool's
    spread: the chosen set shares mass as the pool does, wherever the pool's modes are.

    The pool may be 20,000 draws of a one-shot sampler; the target corrects what they get slightly wrong.
    Without `sweeps` and `balance` it is the algorithm as published.
    """
    return draws[thin_indices(draws, target, num_points, sweeps=sweeps, balance=balance)]


def thin_indices(
    draws: Float[Array, "n dim"], target: Target, num_points: int, *, sweeps: int = 1, balance: float = 1.0
) -> Int[Array, " m"]:
    """Return the numbers of the rows that `thin` keeps, in the order in which it chose them."""
    draws = check_draws(draws, dim=target.dim, at_least=1)
    sweeps = check_count(sweeps, "sweeps", at_least=0)
    balance = check_positive(balance, "balance", zero=True)
    return _choose(draws, target, check_count(num_points, "num_points"), sweeps, jnp.asarray(balance))


@eqx.filter_jit
def _choose(
    draws: Float[Array, "n dim"], target: Target, num_points: int, sweeps: int, balance: Float[Array, ""]
) -> Int[Array, " m"]:
    kernel, scores = IMQ(), jax.vmap(target.score)(draws)
    scaled = _scaled(draws)

    def column(i: Int[Array, ""]) -> Float[Array, " n"]:
        stein = kernel.stein_gram(draws, draws[i][None], scores, scores[i][None])[:, 0]
        return stein + balance * kernel.gram(scaled, scaled[i][None])[:, 0]

    def add(sums: Float[Array, " n"], size: Any) -> tuple[Float[Array, " n"], Int[Array, ""]]:
        # `size` counts the set with the new point in it: the pull of the pool grows with the set.
        best = jnp.argmin(jnp.where(usable, sums - size * pull, jnp.inf))
        return sums + column(best), best

    def exchange(carry: Any, place: Int[Array, ""]) -> tuple[Any, None]:
        sums, chosen = carry
        sums, best = add(sums - column(chosen[place]), num_points)
        return (sums, chosen.at[place].set(best)), None

    pull = balance * _mean_rows(kernel, scaled)
    # The diagonal of the Stein kernel; the running sums start from half of it. That of the other is one.
    diagonal = jnp.sum(scores**2, axis=1) + draws.shape[1]
    # A draw where the score overflows must never be chosen, and argmin would choose a NaN.
    usable = jnp.isfinite(diagonal)
    chosen = jax.lax.scan(add, 0.5 * diagonal, 1.0 + jnp.arange(num_points))
    places = jnp.tile(jnp.arange(num_points), sweeps)
    return jax.lax.scan(exchange, chosen, places)[0][1]


def _scaled(draws: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    """Return the draws in units of each coordinate's quartiles, so that pairs are one apart or so."""
    low, middle, high = jnp.quantile(draws, jnp.array([0.25, 0.5, 0.75]), axis=0)
    spread = jnp.where(high > low, high - low, 1.0)
    return (draws - middle) / (spread * jnp.sqrt(draws.shape[1]))


def _mean_rows(kernel: IMQ, points: Float[Array, "n dim"], most: int = 4096) -> Float[Array, " n"]:
    """Return each point's mean kernel value over the points, or over `most` of them, evenly taken."""
    some = points[:: -(-len(points) // most)]
    return jax.lax.map(lambda x: jnp.mean(kernel.gram(x[None], some)), points, batch_size=256)
