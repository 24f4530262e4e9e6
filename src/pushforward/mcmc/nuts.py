"""The no-U-turn sampler with tuned step and mass, by BlackJAX: a reference where none is exact."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from pushforward.mcmc.chains import start
from pushforward.optional import need

blackjax = need("This chain stands on", "blackjax", "mcmc", "adaptation.base")

KERNEL = blackjax.nuts.build_kernel()


class TunedChains(NamedTuple):
    """The chains, and for each the step size and inverse mass matrix its warm-up settled on."""

    chains: Any
    step_size: Float[Array, " chains"]
    inverse_mass_matrix: Float[Array, "chains ..."]


def algorithm(
    target: Target,
    num_chains: int = 8,
    num_warmup: int = 500,
    target_acceptance: float = 0.8,
    initial_scale: float = 1.0,
    *,
    dense_mass: bool = False,
) -> Algorithm:
    """Return NUTS over a few long chains.

    `init` runs the warm-up (Stan's windows), each chain on its own. `sample(key, state, n)` runs
    all chains on from the state and returns the first `n` of their further positions, sweep by
    sweep: draws of one chain depend on each other, as always with a chain.

    **Arguments:**

    - `target`: the density; its gradient is taken of `log_density`.
    - `num_chains`: chains; more than one, so that a chain that has lost its way is seen.
    - `num_warmup`: tuning steps for each chain.
    - `target_acceptance`: nearer to 1 means smaller steps, for targets with narrow places.
    - `initial_scale`: chains start at `N(0, initial_scale^2 I)`.
    - `dense_mass`: tune a full mass matrix and not only its diagonal.
    """
    num_chains = check_count(num_chains, "num_chains")
    init = eqx.Partial(
        _init,
        target=target,
        num_chains=num_chains,
        num_warmup=check_count(num_warmup, "num_warmup"),
        target_acceptance=check_positive(target_acceptance, "target_acceptance"),
        scale=jnp.asarray(check_positive(initial_scale, "initial_scale")),
        dense_mass=dense_mass,
    )
    return Algorithm(
        init=init,
        step=eqx.Partial(_step, target=target),
        sample=eqx.Partial(_sample, target=target),
    )


def _init(
    key: Key[Array, ""],
    *,
    target: Target,
    num_chains: int,
    num_warmup: int,
    target_acceptance: float,
    scale: Float[Array, ""],
    dense_mass: bool,
) -> TunedChains:
    key_start, key_warmup = jax.random.split(key)
    warmup = blackjax.window_adaptation(
        blackjax.nuts,
        target.log_density,
        is_mass_matrix_diagonal=not dense_mass,
        target_acceptance_rate=target_acceptance,
        adaptation_info_fn=blackjax.adaptation.base.get_filter_adapt_info_fn(),
    )

    def tune(key, position):
        # BlackJAX's protocol for `run` leaves out the number of steps, which every `run` takes.
        (chain, parameters), _ = warmup.run(key, position, num_warmup)  # pyright: ignore[reportCallIssue]
        return TunedChains(chain, parameters["step_size"], parameters["inverse_mass_matrix"])

    positions = start(key_start, num_chains, target.dim, scale)
    return jax.vmap(tune)(jax.random.split(key_warmup, num_chains), positions)


def _step(key: Key[Array, ""], state: TunedChains, *, target: Target) -> tuple[TunedChains, dict[str, Any]]:
    def one_chain(key, tuned):
        chain, info = KERNEL(
            key, tuned.chains, target.log_density, tuned.step_size, tuned.inverse_mass_matrix
        )
        return tuned._replace(chains=chain), info

    keys = jax.random.split(key, state.step_size.shape[0])
    state, info = jax.vmap(one_chain)(keys, state)
    return state, {
        "acceptance": jnp.mean(info.acceptance_rate),
        "divergent": jnp.mean(info.is_divergent),
        "leapfrog_steps": jnp.mean(info.num_integration_steps),
    }


@eqx.filter_jit
def _sample(key: Key[Array, ""], state: TunedChains, n: int, *, target: Target) -> Float[Array, "n dim"]:
    def sweep(state, key):
        state, _ = _step(key, state, target=target)
        return state, state.chains.position

    num_sweeps = -(-check_count(n, "n") // state.step_size.shape[0])
    _, positions = jax.lax.scan(sweep, state, jax.random.split(key, num_sweeps))
    return positions.reshape(-1, target.dim)[:n]
