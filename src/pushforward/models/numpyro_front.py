"""NumPyro models as targets: their sites become named parameters, by NumPyro's supports and bijections."""

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from pushforward.base import NamedTarget
from pushforward.models import sites
from pushforward.models.extras import check_observed, first_line, listed
from pushforward.optional import need
from pushforward.parameters import Parameters, read_constraint


def from_numpyro(model: Callable[..., Any], /, *args: Any, **kwargs: Any) -> NamedTarget:
    """Make a target of a NumPyro model, called as `model(*args, **kwargs)`.

        target = pf.from_numpyro(eight_schools, sigma, y=y)

    The target's log density is that of the model's latent sites, mapped to R^dim by NumPyro's bijections,
    with their log-determinants: up to rounding what NumPyro's own samplers see. Draws come back under the
    names of the sites. Arrays among the arguments are passed to the compiled program, not built into it,
    unless the model needs their values to decide what to do.

    **Arguments:**

    - `model`: the model. Sites must be continuous, and their supports must not depend on other sites.
    - `args`, `kwargs`: what it is called with: its data.
    """
    need("This front end needs", "numpyro", "models", alone=True)
    if not callable(model):
        raise TypeError(f"`model` must be a function with NumPyro's sites; got {type(model).__name__}.")
    name = getattr(model, "__name__", type(model).__name__)
    _check_arguments(model, name, args, kwargs)
    first, second = (_trace(model, name, args, kwargs, seed) for seed in (0, 1))
    latent = sites.latent_sites(first, name)
    sites.check_same(first, second, name)
    _check_data(model, name, first, second, args, kwargs)
    record = Parameters(tuple(_parameter(site, second[key], name) for key, site in latent.items()))
    derived = [key for key, site in first.items() if site["type"] == "deterministic"]
    return _target(model, name, args, kwargs, record, derived)


def _parameter(site: dict[str, Any], again: dict[str, Any], model: str) -> Any:
    support, key = site["fn"].support, site["name"]
    try:
        found = read_constraint(key, np.shape(site["value"]), support, sites.axes(site))
        same = found == read_constraint(key, np.shape(again["value"]), again["fn"].support, sites.axes(again))
    except ValueError as error:
        raise ValueError(f"`model`: site {key!r} of {model!r} cannot be used. {error}") from None
    if not same:
        raise ValueError(
            f"`model`: the support of site {key!r} of {model!r} depends on other sites ({support!r} in one "
            "run). Its limits must be constants: sample its place within them, for instance from "
            "Uniform(0, 1) or a positive distribution, and compute the site with `numpyro.deterministic`."
        )
    return found


def _target(
    model: Any, name: str, args: tuple, kwargs: dict, record: Parameters, derived: list[str]
) -> NamedTarget:
    """Bind the data as arguments of the compiled program; as constants, if the model looks at them."""
    arrays, plain = eqx.partition(jax.tree.map(_as_jax, (args, kwargs)), eqx.is_array)

    def made(bind: Callable[..., Any]) -> NamedTarget:
        derive = bind(sites.derived, derived) if derived else None
        return NamedTarget(fn=bind(sites.log_density), record=record, name=name, derive=derive)

    def as_arguments(function: Callable[..., Any], *more: Any) -> Any:
        def call(arrays, values):
            return function(model, *eqx.combine(arrays, plain), values, *more)

        return eqx.Partial(call, arrays)

    def as_constants(function: Callable[..., Any], *more: Any) -> Any:
        # As they came: what NumPy computes of its own arrays is known while JAX compiles.
        return lambda values: function(model, args, kwargs, values, *more)

    point = np.zeros(record.dim, np.float32)
    try:
        target = made(as_arguments)
        eqx.filter_eval_shape(target.log_density, point)
        return target
    except Exception:
        target = made(as_constants)
    try:
        eqx.filter_eval_shape(target.log_density, point)
    except Exception as error:
        raise ValueError(
            f"`model`: the log density of {name!r} cannot be compiled: {first_line(error)} "
            f"{_remedy(error, args, kwargs)}"
        ) from error
    return target


def _remedy(error: Exception, args: tuple, kwargs: dict) -> str:
    """Return what to try, as far as the error tells."""
    if isinstance(error, jax.errors.ConcretizationTypeError):
        return "Sites must not decide Python's control flow; use `jax.numpy.where` or `jax.lax.cond`."
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return (
            "Something in the model is no array of JAX's or NumPy's (a table of pandas?), or computes with "
            "NumPy: pass `table.to_numpy()`, and write `jax.numpy`."
        )
    return f"Check its data: {_described(args, kwargs)}."


def _as_jax(leaf: Any) -> Any:
    is_numbers = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fiub"
    return jax.device_put(leaf) if is_numbers else leaf


def _check_arguments(model: Any, name: str, args: tuple, kwargs: dict) -> None:
    signature = None
    try:
        signature = inspect.signature(model)
        signature.bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        if signature is None:
            return
        raise TypeError(
            f"`model`: {name!r} cannot be called with what was given: {error}. Its data follow the model: "
            f"`from_numpyro({name}, ...)` with the arguments of `{name}{signature}`."
        ) from None


def _trace(model: Any, name: str, args: tuple, kwargs: dict, seed: int) -> dict[str, dict[str, Any]]:
    try:
        return sites.run(model, args, kwargs, seed)
    except Exception as error:
        raise ValueError(
            f"`model`: {name!r} failed when it was run: {first_line(error)} Check its data: "
            f"{_described(args, kwargs)}."
        ) from error


def _described(args: tuple, kwargs: dict) -> str:
    words = [*(_shape(value) for value in args), *(f"{key}={_shape(value)}" for key, value in kwargs.items())]
    return ", ".join(words) or "none were given"


def _shape(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is None:
        return repr(value)[:40]
    array = np.asarray(value)
    holes = int(np.isnan(array).sum()) if array.dtype.kind == "f" else 0
    return f"{type(value).__name__}{list(shape)}" + (f" with {holes} NaN" if holes else "")


def _check_data(model: Any, name: str, first: dict, second: dict, args: tuple, kwargs: dict) -> None:
    """Refuse a posterior without data, data with holes, and data that the likelihood rules out."""
    observed = {key: site for key, site in first.items() if site["type"] == "sample" and site["is_observed"]}
    left = [key for key, value in _left_at_none(model, args, kwargs).items() if value is None]
    if not observed and left:
        raise ValueError(
            f"`model`: {name!r} has no observed site, and its argument(s) {listed(left)} were not given: its "
            f"data are missing. Write `from_numpyro({name}, ..., {left[0]}=...)`; to sample the prior on "
            f"purpose, say `{left[0]}=None`."
        )
    for key, site in observed.items():
        differ = sites.shapes_that_differ(site)
        if differ is not None:
            raise ValueError(
                f"`model`: the data at {key!r} of {name!r} have shape {differ[1]}, and the likelihood there "
                f"has shape {differ[0]}. Check that all arguments are of the same rows: "
                f"{_described(args, kwargs)}."
            )
        if sites.is_masked(site):
            continue
        check_observed(name, key, site["value"])
        outside = sites.outside_support(site, second[key])
        if outside:
            raise ValueError(
                f"`model`: {outside} of {np.size(site['value'])} data at {key!r} of {name!r} lie outside the "
                f"support of {type(site['fn']).__name__}, {site['fn'].support!r}: the log density is -inf or "
                "makes no sense there. Check their units and coding."
            )


def _left_at_none(model: Any, args: tuple, kwargs: dict) -> dict[str, Any]:
    """Return the defaults of the arguments that were not given."""
    try:
        signature = inspect.signature(model)
        given = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {}
    return {
        key: parameter.default
        for key, parameter in signature.parameters.items()
        if key not in given and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
