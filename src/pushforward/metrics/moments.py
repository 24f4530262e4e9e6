"""First and second moments of draws, each in the units of the truth."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.metrics.inputs import check_draws


def mean_error(
    draws: Float[Array, "n dim"], reference: Target | Float[Array, "m dim"]
) -> Float[Array, " dim"]:
    """Return how far the mean of each coordinate is off, in standard deviations of the reference.

        (mean(draws) - mean) / sd

    Exact draws score `N(0, 1/n)` in each coordinate.

    **Arguments:**

    - `draws`: shape `(n, dim)`.
    - `reference`: a target that knows its moments, or draws that are to be trusted.
    """
    mean, sd = _moments(reference)
    draws = check_draws(draws, dim=mean.shape[0], at_least=1)
    return (jnp.mean(draws, axis=0) - mean) / sd


def sd_ratio(draws: Float[Array, "n dim"], reference: Target | Float[Array, "m dim"]) -> Float[Array, " dim"]:
    """Return the standard deviation of each coordinate over that of the reference: 1 is right.

    Arguments as in `mean_error`.
    """
    mean, sd = _moments(reference)
    draws = check_draws(draws, dim=mean.shape[0])
    return jnp.std(draws, axis=0, ddof=1) / sd


def _moments(
    reference: Target | Float[Array, "m dim"],
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    if not isinstance(reference, eqx.Module):
        reference = check_draws(reference, "reference")
        return jnp.mean(reference, axis=0), jnp.std(reference, axis=0, ddof=1)
    mean = getattr(reference, "mean", None)
    covariance = getattr(reference, "covariance", None)
    if mean is None or covariance is None:
        raise ValueError(
            "`reference` must be a target that knows its `mean` and `covariance`, or draws; "
            f"{type(reference).__name__} does not know them. Pass draws of a sampler you trust."
        )
    return mean, jnp.sqrt(jnp.diag(covariance))
