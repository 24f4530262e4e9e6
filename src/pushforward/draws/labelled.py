"""Draws as ArviZ InferenceData: labelled axes, one chain, and attributes that claim no more than is so."""

import warnings
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from pushforward.base import Target
from pushforward.optional import need

if TYPE_CHECKING:
    from pushforward.draws.record import Draws

INDEPENDENT = (
    "independent draws of a one-shot sampler: no Markov chain, so R-hat has no meaning and the "
    "effective sample size is the number of draws"
)
DEPENDENT = (
    "not independent of each other, and no Markov chain: R-hat and effective sample sizes have no meaning"
)


def import_arviz() -> Any:
    """Import ArviZ without the news that it prints, or say how to get it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return need("`to_arviz` and `.nc` files need", "arviz", "draws")


def to_arviz(draws: "Draws", target: Target | None = None, *, coordinates: bool = False) -> Any:
    """Return InferenceData, with `sample_stats` if anything is known of single draws."""
    arviz = import_arviz()
    about = draws.about
    attributes = {
        "inference_library": "pushforward",
        "draws": DEPENDENT if about.get("latents") == "sobol" or "thinned" in about else INDEPENDENT,
        **{name: _text(value) for name, value in about.items()},
    }
    stats = {name: np.asarray(value)[None] for name, value in draws.stats.items()}
    if target is not None:
        stats["lp"] = np.asarray(jax.jit(jax.vmap(target.log_density))(draws.unconstrained))[None]
    dims, labels = axes(draws)
    groups = {
        "posterior": _dataset(arviz, {n: np.asarray(v)[None] for n, v in draws.values.items()}, dims, labels),
    }
    if stats:
        groups["sample_stats"] = _dataset(arviz, stats, {}, {})
    if coordinates and draws.coordinates is not None:
        named = {"coordinates": np.asarray(draws.coordinates)[None]}
        groups["unconstrained_posterior"] = _dataset(arviz, named, {"coordinates": ["coordinate"]}, {})
    for group in groups.values():
        group.attrs.update(attributes)
    return arviz.InferenceData(**groups)


def axes(draws: "Draws") -> tuple[dict[str, list[str]], dict[str, list[Any]]]:
    """Return the names of each parameter's axes, and the labels along them."""
    if draws.parameters is None:
        return {}, {}
    dims = {item.name: list(item.dims) for item in draws.parameters.items if item.dims}
    return dims, {axis: list(labels) for axis, labels in draws.parameters.coords}


def _dataset(arviz: Any, values: dict[str, np.ndarray], dims: Any, labels: Any) -> Any:
    with warnings.catch_warnings():
        # More chains than draws, says ArviZ of a single draw.
        warnings.simplefilter("ignore")
        used = {axis for name in values for axis in dims.get(name, ())}
        found = arviz.dict_to_dataset(
            values,
            dims={name: dims[name] for name in values if name in dims},
            coords={axis: entries for axis, entries in labels.items() if axis in used},
        )
    # ArviZ notes the time of making; draws are the same whenever they are made.
    found.attrs = {}
    return found


def _text(value: Any) -> str | int | float:
    """Return an attribute that every file format holds."""
    import json

    return (
        value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)
    )
