"""Draws a user can work with: named, constrained arrays, and what is known of how they came about."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, KeysView, Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Key

from pushforward.base import NamedTarget, Target, aligned
from pushforward.checks import check_count, check_name
from pushforward.draws.contents import Contents, columns
from pushforward.draws.summary import Summary
from pushforward.optional import need
from pushforward.parameters.record import Parameters
from pushforward.tables import brief, html_table

if TYPE_CHECKING:
    import os

    import arviz
    import pandas


class Draws(eqx.Module):
    """`n` draws as a pytree: `draws["theta"]` has shape `(n, *shape of theta)`; without names, all are `x`.

    `np.asarray(draws)` are the draws in R^dim, of shape `(n, dim)`, as targets and `check` take them.
    Made by `sampler.draws(key, n)`, or read by `load_draws(path)`.
    """

    values: dict[str, Any] = eqx.field(converter=OrderedDict)
    """Constrained arrays by name, in the order of the model: the parameters, and what was derived of them.

    Not a plain dictionary, whose names JAX sorts.
    """
    coordinates: Float[Array, "n dim"] | None
    """The same draws in R^dim, as targets see them; `None` if a file did not say how to get there."""
    stats: dict[str, Any]
    """What is known of each draw, such as how often its refinement was accepted."""
    parameters: Parameters | None = eqx.field(static=True)
    about_json: str = eqx.field(static=True, default="{}")

    @staticmethod
    def of(
        x: Float[Array, "n dim"],
        parameters: Parameters | None = None,
        about: Mapping[str, Any] | None = None,
        stats: Mapping[str, Any] | None = None,
    ) -> "Draws":
        """Name the points `x` of R^dim: each goes through the maps of `parameters`."""
        parameters = Parameters.plain(x.shape[1]) if parameters is None else parameters
        # By NumPy, which has nothing to compile, unless JAX is making a program; values may overflow where a
        # draw is far out.
        points = x if isinstance(x, Tracer) else np.asarray(x)
        with np.errstate(all="ignore"):
            values = {name: jax.device_put(y) for name, y in parameters.constrain(points).items()}
        return Draws(values, jax.device_put(points), dict(stats or {}), parameters, json.dumps(about or {}))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all arrays."""
        return tuple(self.values)

    @property
    def about(self) -> dict[str, Any]:
        """Where the draws come from, and what was done to them."""
        return json.loads(self.about_json)

    @property
    def unconstrained(self) -> Float[Array, "n dim"]:
        """The draws in R^dim, as targets see them."""
        if self.coordinates is None:
            raise ValueError(
                "these draws were read from a file that does not say how its values are constrained. Load "
                "them with `load_draws(path, like=sampler)`, where `like` is their sampler or target."
            )
        return self.coordinates

    def __getitem__(self, name: str) -> Any:
        """Return the array of that name, or say which name is nearest."""
        return self.values[check_name(name, self.values)]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the array of that name, or `default` if there is none."""
        return self.values.get(name, default)

    def keys(self) -> KeysView[str]:
        """Return the names, so that `dict(draws)` holds the arrays."""
        return self.values.keys()

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return next(iter(self.values.values())).shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:  # noqa: FBT001 (NumPy's)
        return np.array(self.unconstrained, dtype, copy=copy)

    def __repr__(self) -> str:
        shapes = {name: value.shape[1:] for name, value in self.values.items()}
        return f"Draws({len(self):,} draws: {brief(shapes)})"

    def _repr_html_(self) -> str:
        kinds = {} if self.parameters is None else {item.name: item.kind for item in self.parameters.items}
        rows = [[name, str(list(y.shape[1:])), kinds.get(name, "")] for name, y in self.values.items()]
        return html_table(f"{len(self):,} draws", ("name", "shape", "constraint"), rows)

    def summary(self) -> Summary:
        """Return mean, sd and quantiles of each number of a draw; print it, or ask for `["theta[3]"]`."""
        return Summary(columns(self.contents().values))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a table of pandas with a column for each number of a draw: `mu`, `theta[3]`, `L[1,0]`."""
        return need("`to_pandas` needs", "pandas", "draws", alone=True).DataFrame(
            columns(self.contents().values)
        )

    def thin(self, num_points: int, target: Target) -> "Draws":
        """Return the `num_points` draws that together stand best for `target`: Stein thinning, see `thin`."""
        target = self._aligned(target)
        from pushforward.draws.thinning import thin_indices

        rows = np.asarray(thin_indices(self.unconstrained, target, check_count(num_points, "num_points")))
        values, coordinates, stats = self._each(lambda array: jax.device_put(np.asarray(array)[rows]))
        about = json.dumps(self.about | {"thinned": {"from": len(self)}})
        return Draws(values, coordinates, stats, self.parameters, about)

    def refine(
        self, key: Key[Array, ""], target: Target, *, steps: int = 10, kernel: str = "mala", warmup: int = 30
    ) -> "Draws":
        """Return the draws after a few steps of MCMC from each of them, by BlackJAX; see `refine`.

        The acceptance of each draw is in `stats["acceptance"]`; the mean, the step size and how many draws
        never moved are in `about["refined"]`. Derived values are dropped, since they are of other draws now.
        """
        target = self._aligned(target)
        from pushforward.draws.refining import refine

        found = refine(key, self.unconstrained, target, steps=steps, kernel=kernel, warmup=warmup)
        about = self.about | {"refined": found.summary(kernel, steps)}
        return Draws.of(found.draws, self.parameters, about, self.stats | {"acceptance": found.acceptance})

    def derive(self, target: Target) -> "Draws":
        """Add what the model computes of its parameters: NumPyro's and PyMC's deterministic sites."""
        target = self._aligned(target)
        if not isinstance(target, NamedTarget) or target.derive is None:
            raise ValueError(
                f"`target`: {target.name!r} has nothing to derive. Deterministic sites come with "
                "`from_numpyro` and `from_pymc`."
            )
        values = self.values | _derive(target, self.unconstrained)
        return Draws(values, self.coordinates, self.stats, self.parameters, self.about_json)

    def to_arviz(self, target: Target | None = None) -> "arviz.InferenceData":
        """Return the draws as ArviZ `InferenceData` of one chain, which is no Markov chain, as its attributes
        say; with a `target`, also its log density `lp`.
        """
        from pushforward.draws.netcdf_files import to_arviz

        found = self.contents()
        if target is not None:
            lp = jax.jit(jax.vmap(self._aligned(target).log_density))(self.unconstrained)
            found = found._replace(stats={**found.stats, "lp": np.asarray(lp)})
        return to_arviz(found)

    def contents(self) -> Contents:
        """Return what a file of the draws holds, as NumPy's arrays."""
        return Contents(*self._each(np.asarray), self.parameters, self.about)

    def _each(self, change: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
        return jax.tree.map(change, (self.values, self.coordinates, self.stats))

    def save(self, path: "str | os.PathLike") -> None:
        """Write a `.npz`, `.npy`, `.csv`, `.parquet` or `.nc` file, which appears when it is whole."""
        from pushforward.draws.files import save

        save(self, path)

    def _aligned(self, target: Target) -> Target:
        """Return the target in the order of the draws' names, or refuse one that these are not draws of."""
        if not isinstance(target, Target):
            raise TypeError(f"`target` must be a Target; got {type(target).__name__}.")
        if self.coordinates is not None and target.dim != self.coordinates.shape[1]:
            raise ValueError(
                f"`target` must be that of the draws, with {self.coordinates.shape[1]} coordinates; "
                f"{target.name!r} has {target.dim}."
            )
        target = aligned(target, self.parameters)
        ours, theirs = self.parameters, target.parameters
        # Coordinates without names may be those of any target.
        if ours is None or theirs is None or ours == Parameters.plain(theirs.dim):
            return target
        if ours.facts() != theirs.facts():
            raise ValueError(
                "`target` must be that of the draws, whose parameters are "
                f"{_words(ours)}; those of {target.name!r} are {_words(theirs)}."
            )
        return target


@eqx.filter_jit
def _derive(target: NamedTarget, x: Float[Array, "n dim"]) -> dict[str, Any]:
    assert target.derive is not None
    derive = target.derive
    return jax.lax.map(lambda point: OrderedDict(derive(target.values(point))), x, batch_size=4096)


def _words(parameters: Parameters) -> str:
    return ", ".join(f"{p.name}{list(p.shape)} {p.kind}" for p in parameters.items[:8])
