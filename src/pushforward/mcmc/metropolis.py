"""Any BlackJAX kernel with an accept step, over many chains at once, as an `Algorithm`."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from pushforward.mcmc.chains import pick, start


def algorithm(
    target: Target,
    kernel: Callable[..., Any],
    init_chain: Callable[..., Any],
    *,
    parameters: dict[str, PyTree],
    num_chains: int,
    initial_scale: float,
) -> Algorithm:
    """Return `num_chains` independent chains of a kernel.

    **Arguments:**

    - `target`: the density, bound as data.
    - `kernel`: BlackJAX's `kernel(key, state, logdensity_fn, **parameters) -> state, info`, of one
      chain; `info` has `acceptance_rate`.
    - `init_chain`: BlackJAX's `init(position, logdensity_fn)`, of one chain.
    - `parameters`: what the kernel needs beyond the density.
    - `num_chains`: each is one draw.
    - `initial_scale`: chains start at `N(0, initial_scale^2 I)`.
    """
    num_chains = check_count(num_chains, "num_chains")
    scale = jnp.asarray(check_positive(initial_scale, "initial_scale"))
    return Algorithm(
        init=eqx.Partial(_init, target=target, init_chain=init_chain, num_chains=num_chains, scale=scale),
        step=eqx.Partial(_step, target=target, kernel=kernel, parameters=parameters),
        sample=_sample,
    )


def _init(
    key: Key[Array, ""],
    *,
    target: Target,
    init_chain: Callable[..., Any],
    num_chains: int,
    scale: Float[Array, ""],
) -> Any:
    positions = start(key, num_chains, target.dim, scale)
    return jax.vmap(lambda x: init_chain(x, target.log_density))(positions)


def _step(
    key: Key[Array, ""],
    state: Any,
    *,
    target: Target,
    kernel: Callable[..., Any],
    parameters: dict[str, PyTree],
) -> tuple[Any, dict[str, Any]]:
    def one_chain(key, state):
        return kernel(key, state, target.log_density, **parameters)

    keys = jax.random.split(key, state.position.shape[0])
    state, info = jax.vmap(one_chain)(keys, state)
    return state, {"acceptance": jnp.mean(info.acceptance_rate)}


def _sample(key: Key[Array, ""], state: Any, n: int) -> Float[Array, "n dim"]:
    return pick(key, state.position, n)
