"""Draws as ArviZ InferenceData: labelled axes, one chain, and attributes that claim no more than is so."""

import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from pushforward.draws.contents import Contents
from pushforward.optional import need

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


def to_arviz(draws: Contents, *, coordinates: bool = False) -> Any:
    """Return InferenceData, with `sample_stats` if anything is known of single draws."""
    arviz, about = import_arviz(), draws.about
    attributes = {
        "inference_library": "pushforward",
        "draws": DEPENDENT if about.get("latents") == "sobol" or "thinned" in about else INDEPENDENT,
        **{name: _text(value) for name, value in about.items()},
    }
    record = draws.parameters
    dims = {item.name: list(item.dims) for item in record.items if item.dims} if record else {}
    labels = {axis: list(names) for axis, names in record.coords} if record else {}
    groups = {"posterior": _dataset(arviz, draws.values, dims, labels)}
    if draws.stats:
        groups["sample_stats"] = _dataset(arviz, draws.stats, {}, {})
    if coordinates and draws.coordinates is not None:
        named = {"coordinates": draws.coordinates}
        groups["unconstrained_posterior"] = _dataset(arviz, named, {"coordinates": ["coordinate"]}, {})
    for group in groups.values():
        group.attrs.update(attributes)
    return arviz.InferenceData(**groups)


def _dataset(arviz: Any, values: Mapping[str, np.ndarray], dims: Any, labels: Any) -> Any:
    with warnings.catch_warnings():
        # More chains than draws, says ArviZ of a single draw.
        warnings.simplefilter("ignore")
        used = {axis for name in values for axis in dims.get(name, ())}
        found = arviz.dict_to_dataset(
            {name: value[None] for name, value in values.items()},
            dims={name: dims[name] for name in values if name in dims},
            coords={axis: entries for axis, entries in labels.items() if axis in used},
        )
    # ArviZ notes the time of making; draws are the same whenever they are made.
    found.attrs = {}
    return found


def _text(value: Any) -> str | int | float:
    """Return an attribute that every file format holds."""
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return value if plain else json.dumps(value)
