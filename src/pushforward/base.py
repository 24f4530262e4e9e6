"""The contracts every part is written against: a target, an exact target, an algorithm."""

import abc
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count
from pushforward.parameters.record import Parameters
from pushforward.programs import use_compilation_cache

# Here, because whatever compiles a program of ours imports this module, and `pushforward` itself need not
# have JAX at all.
use_compilation_cache()

Score: TypeAlias = Callable[[Float[Array, " dim"]], Float[Array, " dim"]]
"""A vector field of one point: the target's score, a score net, a critic."""

Window: TypeAlias = tuple[tuple[float, float], ...]
"""One (low, high) pair per coordinate: where a plot should look."""


class Target(eqx.Module):
    """An un-normalised density `q` on R^dim, known through `log q(x) + constant` of **one** point.

    Authors write `dim`, `name` and `log_density`; batches are made with `vmap` by the caller.
    """

    dim: eqx.AbstractVar[int]
    name: eqx.AbstractVar[str]

    @abc.abstractmethod
    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `log q(x)` up to a constant."""

    def score(self, x: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Return the gradient of `log q` at `x`."""
        return jax.grad(self.log_density)(x)

    @property
    def parameters(self) -> Parameters | None:
        """Names, shapes and constraints of what the coordinates stand for, where the target knows them."""
        return None

    @staticmethod
    def from_log_density(
        fn: Callable[[Any], Float[Array, ""]],
        *,
        dim: int | None = None,
        bounds: Any = None,
        example: Any = None,
        constraints: Any = None,
        name: str | None = None,
    ) -> "FunctionTarget | NamedTarget":
        """Make a target of a plain function: of a vector, or of named and constrained parameters.

            from_log_density(lambda x: ..., dim=3)
            from_log_density(lambda x: ..., dim=3, bounds=(0, [1, 1, None]))
            from_log_density(lambda p: ..., example={"mu": 0.0, "tau": 1.0, "w": jnp.ones(3)},
                             constraints={"tau": "positive", "w": "simplex"})

        `fn` receives values inside their bounds or constraints, in a pytree like `example`, and returns the
        log density **of those values**; the change of variables to R^dim is added here. What
        `sampler.draws(key, n)["x"]` gives is inside again; `sampler.sample` gives coordinates of R^dim.

        **Arguments:**

        - `fn`: maps one point to the log density up to a constant, in JAX's operations. Data it needs are
            best bound with `equinox.Partial`, which keeps them out of the compiled program.
        - `dim`, `example`: the number of coordinates of a vector, or a pytree of arrays or numbers of the
            right shapes, whose values do not matter.
        - `bounds`: `(low, high)` of a vector; each a number, or one for each coordinate; `None` is no bound.
        - `constraints`: for the names of `example` that have one: `"positive"`, `"unit_interval"`,
            `("greater_than", a)`, `("less_than", b)`, `("interval", a, b)`, `"simplex"`, `"ordered"`,
            `"positive_ordered"`, `"corr_cholesky"`, `"corr_matrix"`, `"lower_cholesky"`,
            `"positive_definite"`, or NumPyro's constraints; a single one if `example` is one array.
        - `name`: shown in reports; the function's own name otherwise.
        """
        if not callable(fn):
            raise TypeError(
                f"`fn` must be a function of one point, `fn(x) -> log density`; got {type(fn).__name__}."
            )
        name = str(name or getattr(fn, "__name__", type(fn).__name__))
        if bounds is not None or example is not None:
            from pushforward.parameters import example as examples  # which most fits never ask for

            if bounds is not None:
                example, constraints = examples.vector(dim, bounds, example, constraints)
            record, structure = examples.parameters_of_example(example, constraints)
            if dim is not None and check_count(dim, "dim") != record.dim:
                raise ValueError(
                    f"`dim` must be left out where `example` says it, or be {record.dim}; got {dim}."
                )
            return NamedTarget(fn, record, name, structure=structure)
        if constraints is not None:
            raise ValueError(
                "`constraints` needs `example`, a pytree of arrays whose names and shapes are meant. "
                'Write, for instance, `example={"tau": 1.0}, constraints={"tau": "positive"}`.'
            )
        if dim is None:
            raise ValueError(
                "`dim` or `example` must be given: a function does not say how many coordinates it has. "
                "Add, for instance, `dim=2`."
            )
        return FunctionTarget(fn=fn, dim=check_count(dim, "dim"), name=name)


class FunctionTarget(Target):
    """A target made of a plain function: see `Target.from_log_density`."""

    fn: Callable[..., Any]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `fn(x)`."""
        return self.fn(x)


class NamedTarget(Target):
    """A density of named, constrained parameters, seen from R^dim: `log p(T(x)) + log |det dT/dx|`.

    `fn` receives the values: a dictionary by name or, where there is a `structure`, a pytree of it.
    `derive`, of the same values, returns what else the model computes of them, by name.
    """

    fn: Callable[[Any], Any]
    record: Parameters = eqx.field(static=True)
    derive: Callable[[Any], dict[str, Any]] | None
    structure: Any = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        fn: Callable[[Any], Any],
        record: Parameters,
        name: str,
        *,
        derive: Callable[[Any], dict[str, Any]] | None = None,
        structure: Any = None,
    ):
        """Join a density of values and the record of what they are."""
        self.fn, self.record, self.name = fn, record, name
        self.derive, self.structure, self.dim = derive, structure, record.dim

    @property
    def parameters(self) -> Parameters:
        """Names, shapes and constraints."""
        return self.record

    def values(self, x: Float[Array, " dim"]) -> Any:
        """Return the constrained values at one point, as `fn` receives them."""
        values = self.record.constrain(x)
        return values if self.structure is None else self.structure.filled(values)

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log density of the free coordinates."""
        return self.fn(self.values(x)) + self.record.log_det(x)


def aligned(target: Target, parameters: Parameters | None) -> Target:
    """Return the target with its coordinates in the order of `parameters`, if its own differ by that alone.

    A sampler keeps the order that names had when it was trained, and that of a model may have changed since.
    """
    if not isinstance(target, NamedTarget) or parameters is None:
        return target
    ours, theirs = parameters.facts(), target.record.facts()
    if ours == theirs or set(ours) != set(theirs):
        return target
    return NamedTarget(target.fn, parameters, target.name, derive=target.derive, structure=target.structure)


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


class KnownExact(ExactTarget):
    """An exact target whose moments, name and window are fields."""

    mean: Float[Array, " dim"] | None
    covariance: Float[Array, "dim dim"] | None
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    window: Window | None = eqx.field(static=True)


class Algorithm(NamedTuple):
    """Anything that iterates towards draws: our training, a Markov chain, particles, a flow.

    The state holds what the next step needs; the mapping beside it what a reader may want to see, scalars by
    name. Bind data with `equinox.Partial`: a tuple of partials is a pytree, so the loop passes the data to
    the compiled program as arguments and not as constants.
    """

    init: Callable[[Key[Array, ""]], Any]
    step: Callable[[Key[Array, ""], Any], tuple[Any, dict[str, Any]]]
    sample: Callable[[Key[Array, ""], Any, int], Float[Array, "n dim"]]


def key_for(key: Key[Array, ""], role: str) -> Key[Array, ""]:
    """Return the key of a role, such as a stage's name: it does not depend on what other roles there are."""
    return jax.random.fold_in(key, zlib.crc32(role.encode()))
