"""Any BlackJAX kernel with an accept step, over many chains at once, as an `Algorithm`."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from reproduce.rivals.chains import pick, start


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
    scale = jnp.asarray(check_positive(initial_scale, "initial_scale"))
    chains = _Chains(target, parameters, scale, kernel, init_chain, check_count(num_chains, "num_chains"))
    return Algorithm(chains.init, chains.step, _sample)


class _Chains(eqx.Module):
    target: Target
    parameters: dict[str, PyTree]
    scale: Float[Array, ""]
    kernel: Callable[..., Any] = eqx.field(static=True)
    init_chain: Callable[..., Any] = eqx.field(static=True)
    num_chains: int = eqx.field(static=True)

    def init(self, key: Key[Array, ""]) -> Any:
        positions = start(key, self.num_chains, self.target.dim, self.scale)
        return jax.vmap(lambda x: self.init_chain(x, self.target.log_density))(positions)

    def step(self, key: Key[Array, ""], state: Any) -> tuple[Any, dict[str, Any]]:
        def one_chain(key, state):
            return self.kernel(key, state, self.target.log_density, **self.parameters)

        state, info = jax.vmap(one_chain)(jax.random.split(key, self.num_chains), state)
        return state, {"acceptance": jnp.mean(info.acceptance_rate)}


def _sample(key: Key[Array, ""], state: Any, n: int) -> Float[Array, "n dim"]:
    return pick(key, state.position, n)
