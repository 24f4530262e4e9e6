"""The no-U-turn sampler with tuned step and mass, by BlackJAX: a reference where none is exact."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
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
    """
    nuts = _Nuts(
        target,
        jnp.asarray(check_positive(initial_scale, "initial_scale")),
        check_count(num_chains, "num_chains"),
        check_count(num_warmup, "num_warmup"),
        check_positive(target_acceptance, "target_acceptance"),
    )
    return Algorithm(nuts.init, nuts.step, nuts.sample)


class _Nuts(eqx.Module):
    target: Target
    scale: Float[Array, ""]
    num_chains: int = eqx.field(static=True)
    num_warmup: int = eqx.field(static=True)
    acceptance: float = eqx.field(static=True)

    def init(self, key: Key[Array, ""]) -> TunedChains:
        key_start, key_warmup = jax.random.split(key)
        warmup = blackjax.window_adaptation(
            blackjax.nuts,
            self.target.log_density,
            target_acceptance_rate=self.acceptance,
            adaptation_info_fn=blackjax.adaptation.base.get_filter_adapt_info_fn(),
        )

        def tune(key, position):
            # BlackJAX's protocol for `run` leaves out the number of steps, which every `run` takes.
            (chain, found), _ = warmup.run(key, position, self.num_warmup)  # pyright: ignore[reportCallIssue]
            return TunedChains(chain, found["step_size"], found["inverse_mass_matrix"])

        positions = self.scale * jax.random.normal(key_start, (self.num_chains, self.target.dim))
        return jax.vmap(tune)(jax.random.split(key_warmup, self.num_chains), positions)

    def step(self, key: Key[Array, ""], state: TunedChains) -> tuple[TunedChains, dict[str, Any]]:
        def one_chain(key, tuned):
            chain, *found = tuned
            chain, info = KERNEL(key, chain, self.target.log_density, *found)
            return tuned._replace(chains=chain), info

        state, info = jax.vmap(one_chain)(jax.random.split(key, self.num_chains), state)
        return state, {
            "acceptance": jnp.mean(info.acceptance_rate),
            "divergent": jnp.mean(info.is_divergent),
            "leapfrog_steps": jnp.mean(info.num_integration_steps),
        }

    @eqx.filter_jit
    def sample(self, key: Key[Array, ""], state: TunedChains, n: int) -> Float[Array, "n dim"]:
        def sweep(state, key):
            state, _ = self.step(key, state)
            return state, state.chains.position

        num_sweeps = -(-check_count(n, "n") // self.num_chains)
        _, positions = jax.lax.scan(sweep, state, jax.random.split(key, num_sweeps))
        return positions.reshape(-1, self.target.dim)[:n]
