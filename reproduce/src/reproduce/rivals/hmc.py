"""Hamiltonian Monte Carlo with a fixed trajectory, by BlackJAX: the paper's HMC."""

import blackjax
import jax.numpy as jnp

from pushforward.base import Algorithm, Target
from pushforward.checks import check_count, check_positive
from reproduce.rivals import metropolis

# One kernel for all: `build_kernel` makes a new function at each call, and each would be compiled.
KERNEL = blackjax.hmc.build_kernel()


def algorithm(
    target: Target,
    num_chains: int = 1000,
    step_size: float = 0.1,
    num_leapfrog: int = 10,
    initial_scale: float = 1.0,
) -> Algorithm:
    """Return HMC with unit mass: fresh momentum, leapfrog steps, then accept or stay (facts 3.2).

    **Arguments:**

    - `target`: the density; its gradient is taken of `log_density`.
    - `num_chains`: independent chains; each is one draw.
    - `step_size`, `num_leapfrog`: the paper has 0.1 and 10, accepted more than 99 % of the time.
    - `initial_scale`: chains start at `N(0, initial_scale^2 I)`.
    """
    return metropolis.algorithm(
        target,
        KERNEL,
        blackjax.hmc.init,
        parameters={
            "step_size": jnp.asarray(check_positive(step_size, "step_size")),
            "inverse_mass_matrix": jnp.ones(target.dim),
            "num_integration_steps": check_count(num_leapfrog, "num_leapfrog"),
        },
        num_chains=num_chains,
        initial_scale=initial_scale,
    )
