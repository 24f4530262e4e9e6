"""What a sampler must know of a model to name its draws: plain values, written as JSON, checked when read."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pushforward.checks import check_choice

if TYPE_CHECKING:
    from pushforward.parameters.kind import Kind, Module, Shape, Values

MAX_SIZE = 2**31  # no honest parameter is larger; a stranger's file shall not overflow a product of sizes

Bound = float | tuple[float | None, ...] | None
Label = str | int | float


@dataclass(frozen=True)
class Parameter:
    """One named array: its shape, its constraint, and where it has them the constraint's constants.

    `low` and `high` are one number, or one for each number of the parameter, in C order. `dims` names the
    axes, for labelled arrays.
    """

    name: str
    shape: tuple[int, ...] = ()
    kind: str = "real"
    low: Bound = None
    high: Bound = None
    dims: tuple[str, ...] | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise ValueError(f"a parameter's name must be printable text; got {self.name!r}.")
        sizes = isinstance(self.shape, tuple) and all(type(n) is int and n >= 0 for n in self.shape)
        if not sizes or math.prod(self.shape) > MAX_SIZE or len(self.shape) > 16:
            raise ValueError(f"parameter {self.name!r}: its shape must be sizes; got {self.shape!r}.")
        check_choice(self.kind, f"constraint of {self.name!r}", _kinds())
        try:
            self.map.free_shape(self.shape)
        except ValueError as error:
            raise ValueError(
                f"parameter {self.name!r}: the constraint {self.kind!r} {error}. Change the shape or the "
                "constraint."
            ) from None
        self._check_bounds()
        words = self.dims is None or all(isinstance(d, str) and d for d in self.dims)
        if not words or len(self.shape) != len(self.shape if self.dims is None else self.dims):
            axes = len(self.shape)
            raise ValueError(f"parameter {self.name!r}: its {axes} axes cannot be named {self.dims}.")

    @property
    def map(self) -> "Kind":
        """The bijection."""
        return _kinds()[self.kind]

    @property
    def free_shape(self) -> "Shape":
        """The shape of its free coordinates."""
        return self.map.free_shape(self.shape)

    @property
    def size(self) -> int:
        """How many free coordinates it has."""
        return math.prod(self.free_shape)

    def constants(self, dtype: Any) -> list[np.ndarray]:
        """Return those of `low` and `high` that it has, as arrays that broadcast against values."""
        found = []
        for side in self.map.constants:
            bound = getattr(self, side)
            if isinstance(bound, tuple):
                none = -math.inf if side == "low" else math.inf
                bound = np.reshape([none if number is None else number for number in bound], self.shape)
            found.append(np.asarray(bound, dtype))
        return found

    def _check_bounds(self) -> None:
        for side in ("low", "high"):
            bound, needed = getattr(self, side), side in self.map.constants
            numbers = bound if isinstance(bound, tuple) else (bound,)
            if needed != (bound is not None) or (
                needed
                and not all(
                    (type(b) in (int, float) and math.isfinite(b)) or (b is None and self.kind == "box")
                    for b in numbers
                )
            ):
                expected = "finite numbers" if needed else "nothing"
                raise ValueError(
                    f"parameter {self.name!r}: `{side}` of the constraint {self.kind!r} must be {expected}; "
                    f"got {bound!r}."
                )
            if isinstance(bound, tuple) and len(bound) != math.prod(self.shape):
                raise ValueError(
                    f"parameter {self.name!r}: `{side}` must be one number or "
                    f"{math.prod(self.shape)}, one for each of its own; got {len(bound)}."
                )
        if self.kind in ("interval", "box") and not np.less(*self.constants(np.float64)).all():
            ends = f"{self.low} to {self.high}"
            raise ValueError(f"parameter {self.name!r}: an interval must end above its start; got {ends}.")


@dataclass(frozen=True)
class Parameters:
    """All parameters of a target, in the order of its coordinates: the map between R^dim and named arrays."""

    items: tuple[Parameter, ...]
    coords: tuple[tuple[str, tuple[Label, ...]], ...] = ()
    """Labels along named axes."""

    def __post_init__(self):
        names = [item.name for item in self.items]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"parameters must have names of their own, and there must be one; got {names}.")
        lengths: dict[str, int] = {}
        for item in self.items:
            for axis, size in zip(item.dims or (), item.shape, strict=bool(item.dims)):
                if lengths.setdefault(axis, size) != size:
                    raise ValueError(f"axis {axis!r} has two lengths, {lengths[axis]} and {size}.")
        for axis, labels in self.coords:
            if lengths.get(axis, len(labels)) != len(labels):
                raise ValueError(f"axis {axis!r} has {lengths[axis]} entries and {len(labels)} labels.")

    @staticmethod
    def plain(dim: int) -> "Parameters":
        """Return one unconstrained vector `x`: what a target without names has."""
        return Parameters((Parameter("x", (dim,)),))

    @property
    def dim(self) -> int:
        """Free coordinates in all."""
        return sum(item.size for item in self.items)

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(item.name for item in self.items)

    def facts(self) -> list[tuple]:
        """Return what coordinates mean, parameter by parameter; how axes are labelled does not matter."""
        return [(p.name, p.shape, p.kind, p.low, p.high) for p in self.items]

    def constrain(self, x: "Values") -> "dict[str, Values]":
        """Map coordinates `(..., dim)` to named values `(..., *shape)`."""
        xp, batch = namespace(x), x.shape[:-1]
        return {
            item.name: item.map.constrain(xp, u, *item.constants(u.dtype)).reshape((*batch, *item.shape))
            for item, u in self._pieces(x)
        }

    def unconstrain(self, values: "Mapping[str, Values]") -> "Values":
        """Map named values back to coordinates; NumPy's arrays to NumPy's, JAX's to JAX's."""
        pieces = []
        for item in self.items:
            y = values[item.name]
            batch = y.shape[: y.ndim - len(item.shape)]
            u = item.map.unconstrain(namespace(y), y, *item.constants(y.dtype))
            pieces.append(u.reshape((*batch, item.size)))
        return namespace(pieces[0]).concatenate(pieces, axis=-1)

    def log_det(self, x: "Values") -> "Values":
        """Return `log |det|` of `constrain` at coordinates `(..., dim)`."""
        xp = namespace(x)
        total = xp.zeros(x.shape[:-1], x.dtype)
        for item, u in self._pieces(x):
            if item.kind != "real":
                logs = item.map.log_det(xp, u, *item.constants(u.dtype))
                total = total + logs.sum(axis=tuple(range(x.ndim - 1, logs.ndim)))
        return total

    def _pieces(self, x: "Values"):
        start = 0
        for item in self.items:
            yield item, x[..., start : start + item.size].reshape((*x.shape[:-1], *item.free_shape))
            start += item.size

    def coordinate_names(self) -> list[str]:
        """Return one name for each coordinate: `mu`, `theta[3]`, `tau (positive, free)`."""
        names = []
        for item in self.items:
            label = item.name if item.kind == "real" else f"{item.name} ({item.kind}, free)"
            places = np.ndindex(*item.free_shape)
            names += [label + (f"[{','.join(map(str, place))}]" if place else "") for place in places]
        return names

    def to_json(self) -> str:
        """Return all of it as text."""
        return json.dumps({"items": [asdict(item) for item in self.items], "coords": self.coords})

    @staticmethod
    def from_json(text: str) -> "Parameters":
        """Read what `to_json` wrote; a `ValueError` says what is wrong with anything else."""
        try:
            body = json.loads(text)
            items = tuple(Parameter(**{k: _tuples(v) for k, v in item.items()}) for item in body["items"])
            coords = tuple((str(axis), _labels(labels)) for axis, labels in body["coords"])
            return Parameters(items, coords)
        except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise ValueError(f"this does not describe parameters: {type(error).__name__}: {error}.") from None


def _kinds() -> "dict[str, Kind]":
    from pushforward.parameters.kinds import KINDS  # which most fits never ask for

    return KINDS


def namespace(x: "Values") -> "Module":
    """Return the module that computes with `x`: NumPy, or JAX's."""
    if isinstance(x, np.ndarray | np.generic):
        return np
    import jax.numpy as jnp

    return jnp


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _labels(labels: Any) -> tuple[Label, ...]:
    if not isinstance(labels, list) or not all(type(label) in (str, int, float) for label in labels):
        raise TypeError("labels of an axis must be text or numbers")
    return tuple(labels)
