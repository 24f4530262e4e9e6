"""The contracts every part is written against: a target, an exact target, an algorithm."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count

Score: TypeAlias = Callable[[Float[Array, " dim"]], Float[Array, " dim"]]
"""A vector field of one point: the target's score, a score net, a critic."""

Window: TypeAlias = tuple[tuple[float, float], ...]
"""One (low, high) pair per coordinate: where a plot should look."""


class Target(eqx.Module):
    """An un-normalised density `q` on R^dim, known through `log q(x) + constant` of **one** point.

    Authors write `dim`, `name` and `log_density`; batches are made with `vmap` by the caller.
    A minibatch, a tempered version or a change of coordinates of a target is another target.
    """

    dim: eqx.AbstractVar[int]
    name: eqx.AbstractVar[str]

    @abc.abstractmethod
    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `log q(x)` up to a constant."""

    def score(self, x: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Return the gradient of `log q` at `x`."""
        return jax.grad(self.log_density)(x)

    @staticmethod
    def from_log_density(
        fn: Callable[[Float[Array, " dim"]], Float[Array, ""]], *, dim: int, name: str | None = None
    ) -> "FunctionTarget":
        """Make a target of a plain function of one point.

        **Arguments:**

        - `fn`: maps an array of shape `(dim,)` to a scalar: the log density up to a constant.
            Must be written in JAX, since it will be differentiated and vectorised. Data it needs
            are best bound with `equinox.Partial`, which keeps them out of the compiled program.
        - `dim`: the number of coordinates.
        - `name`: shown in reports; the function's own name otherwise.
        """
        if not callable(fn):
            raise TypeError(
                f"`fn` must be a function of one point, `fn(x) -> log density`; got {type(fn).__name__}."
            )
        return FunctionTarget(
            fn=fn,
            dim=check_count(dim, "dim"),
            name=name or getattr(fn, "__name__", type(fn).__name__),
        )


class FunctionTarget(Target):
    """A target made of a plain function: see `Target.from_log_density`."""

    fn: Callable[..., Any]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `fn(x)`."""
        return self.fn(x)


class ExactTarget(Target):
    """A target that can also be sampled exactly, so that any method can be held against the truth.

    `mean`, `covariance` and `window` (for plots) are what is known in closed form, else `None`.
    """

    mean: eqx.AbstractVar[Float[Array, " dim"] | None]
    covariance: eqx.AbstractVar[Float[Array, "dim dim"] | None]
    window: eqx.AbstractVar[Window | None]

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], num_samples: int) -> Float[Array, "n dim"]:
        """Draw `num_samples` independent points from the normalised density."""


class Algorithm(NamedTuple):
    """Anything that iterates towards draws: our training, a Markov chain, particles, a flow.

    `init(key) -> state`, `step(key, state) -> (state, info)`, `sample(key, state, n) -> draws`.
    The state holds what the next step needs; the info what a reader may want to see (a mapping of
    names to scalars). Bind data with `equinox.Partial`: a tuple of partials is a pytree, so the
    loop passes the data to the compiled program as arguments and not as constants.
    """

    init: Callable[[Key[Array, ""]], Any]
    step: Callable[[Key[Array, ""], Any], tuple[Any, dict[str, Any]]]
    sample: Callable[[Key[Array, ""], Any, int], Float[Array, "n dim"]]
