"""The Metropolis-adjusted Langevin algorithm, by BlackJAX: LD without its bias."""

import blackjax
import jax.numpy as jnp

from pushforward.base import Algorithm, Target
from pushforward.checks import check_positive
from reproduce.rivals import metropolis

# One kernel for all: `build_kernel` makes a new function at each call, and each would be compiled.
KERNEL = blackjax.mala.build_kernel()


def algorithm(
    target: Target, num_chains: int = 1000, step_size: float = 0.1, initial_scale: float = 1.0
) -> Algorithm:
    """Return Langevin proposals `x + eps s(x) + sqrt(2 eps) xi`, accepted or not.

    BlackJAX's convention is that of `langevin`, so step sizes can be compared.

    **Arguments:**

    - `target`: the density; its gradient is taken of `log_density`.
    - `num_chains`: independent chains; each is one draw.
    - `step_size`: `eps`; the best acceptance is around 0.57.
    - `initial_scale`: chains start at `N(0, initial_scale^2 I)`.
    """
    return metropolis.algorithm(
        target,
        KERNEL,
        blackjax.mala.init,
        parameters={"step_size": jnp.asarray(check_positive(step_size, "step_size"))},
        num_chains=num_chains,
        initial_scale=initial_scale,
    )
