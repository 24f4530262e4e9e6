"""Stein thinning: from many draws, the few that together stand best for the target."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from pushforward.base import Target
from pushforward.checks import check_count
from pushforward.kernels import IMQ
from pushforward.metrics.inputs import check_draws


def thin(
    draws: Float[Array, "n dim"], target: Target, num_points: int, *, sweeps: int = 1
) -> Float[Array, "m dim"]:
    """Return `num_points` of the draws, chosen one by one to keep the KSD of the chosen set lowest.

        i_m = argmin over i of  k0(x_i, x_i) / 2 + sum over chosen j of k0(x_i, x_j)

    (Riabiz et al. 2022), with the kernel of `ksd_imq_v`. Then, `sweeps` times, every chosen point is taken
    out and chosen again, since the first were chosen in ignorance of the rest; one sweep about halves the
    KSD. The points repel each other, and a set of 500 scores far below 500 independent exact draws. A draw
    may be chosen more than once. Time grows with `n * num_points * (1 + 2 * sweeps)`.

    The KSD hardly sees how mass is shared among modes far apart: there, thin the draws of each by itself.
    """
    return draws[thin_indices(draws, target, num_points, sweeps=sweeps)]


def thin_indices(
    draws: Float[Array, "n dim"], target: Target, num_points: int, *, sweeps: int = 1
) -> Int[Array, " m"]:
    """Return the numbers of the rows that `thin` keeps, in the order in which it chose them."""
    draws = check_draws(draws, dim=target.dim, at_least=1)
    sweeps = check_count(sweeps, "sweeps", at_least=0)
    return _choose(draws, target, check_count(num_points, "num_points"), sweeps)


@eqx.filter_jit
def _choose(draws: Float[Array, "n dim"], target: Target, num_points: int, sweeps: int) -> Int[Array, " m"]:
    kernel, scores = IMQ(), jax.vmap(target.score)(draws)

    def column(i: Int[Array, ""]) -> Float[Array, " n"]:
        return kernel.stein_gram(draws, draws[i][None], scores, scores[i][None])[:, 0]

    def add(sums: Float[Array, " n"], _: None) -> tuple[Float[Array, " n"], Int[Array, ""]]:
        best = jnp.argmin(jnp.where(usable, sums, jnp.inf))
        return sums + column(best), best

    def exchange(carry: Any, place: Int[Array, ""]) -> tuple[Any, None]:
        sums, chosen = carry
        sums, best = add(sums - column(chosen[place]), None)
        return (sums, chosen.at[place].set(best)), None

    # The diagonal of the Stein kernel; the running sums start from half of it.
    diagonal = jnp.sum(scores**2, axis=1) + draws.shape[1]
    # A draw where the score overflows must never be chosen, and argmin would choose a NaN.
    usable = jnp.isfinite(diagonal)
    chosen = jax.lax.scan(add, 0.5 * diagonal, None, length=num_points)
    places = jnp.tile(jnp.arange(num_points), sweeps)
    return jax.lax.scan(exchange, chosen, places)[0][1]
