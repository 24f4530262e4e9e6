import dataclasses

import jax
from jaxtyping import Array, Float

from pushforward.targets.funnels import Funnel, funnel


class PublishedFunnel(Funnel):
    """The funnel as the published runs seem to have seen it: the right density, a wrong score.

    The public code differentiates the prior of `y` by its *scale* in place of `y`: its score has
    `(y - m)^2 / s^3 - 1 / s` where `-(y - m) / s^2` belongs. Runs with that score meet the paper's figures
    for its baselines. It is that of an improper density, of which no sampler exists: `sample` draws from the
    right funnel, which is how the paper's floor is made.
    """

    def __init__(self, funnel: Funnel, *, name: str = "published_funnel"):
        """Spoil the score of `funnel`."""
        for field in dataclasses.fields(funnel):
            setattr(self, field.name, getattr(funnel, field.name))
        self.name = name

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the right log density; its gradient is the wrong score."""
        return _published_log_density(self, x)


@jax.custom_jvp
def _published_log_density(funnel: Funnel, x: Float[Array, " dim"]) -> Float[Array, ""]:
    return Funnel.log_density(funnel, x)


@_published_log_density.defjvp
def _published_jvp(primals, tangents):
    (funnel, x), (_, x_dot) = primals, tangents
    offset, s = x[funnel.neck] - funnel.neck_mean, funnel.neck_scale
    # Written as a change to the right score, so that it can itself be differentiated.
    change = offset**2 / s**3 - 1 / s + offset / s**2
    score = jax.grad(lambda point: Funnel.log_density(funnel, point))(x).at[funnel.neck].add(change)
    return _published_log_density(funnel, x), score @ x_dot


def published_funnel() -> PublishedFunnel:
    """Return the paper's funnel with the score its figures speak for, which is wrong."""
    return PublishedFunnel(funnel())
