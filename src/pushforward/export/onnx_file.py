"""The ONNX file of a sampler: the map as a graph, the law of the latents and the story as metadata."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pushforward.atomic import check_place, write_atomically
from pushforward.export.graph import Graph
from pushforward.export.operators import add_frame, add_network
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Latent, Normal, NormalMixture, Uniform

INPUT, OUTPUT = "latents", "draws"
MAX_BYTES = 2**31 - 2**20  # what a protobuf can hold, less some room for the graph around the weights


def write_onnx(
    path: str | os.PathLike,
    latent: Latent,
    network: Any,
    frame: Frame,
    about: Mapping[str, Any],
    more: Mapping[str, str],
) -> None:
    """Write the map from latents `(n, latent)` to draws `(n, dim)` as an ONNX file, atomically.

    The metadata hold `latent`, the law to draw the latents from (JSON: `law`, and its `size` or its
    `weights`, `means`, `choleskys`), which `pushforward.runtime.law` makes a law again; `about`, the
    sampler's story; and `more`, such as the names and constraints of the coordinates. The draws are the
    unconstrained coordinates, as those of `sampler.sample`.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise ValueError(f"`path` must end in `.onnx`; got {str(path)!r}. `sampler.save` writes other files.")
    check_place(path)
    arrays = [leaf for leaf in jax.tree.leaves((network, frame)) if isinstance(leaf, jax.Array | np.ndarray)]
    if not all(np.all(np.isfinite(array)) for array in arrays):
        raise ValueError(
            "the sampler holds values that are not finite, so that its draws would not be either."
        )
    if sum(array.nbytes for array in arrays) > MAX_BYTES:
        raise ValueError("the sampler must hold less than 2 GB of weights: an ONNX file cannot be larger.")
    graph = Graph(np.dtype(frame.centre.dtype))
    add_frame(graph, frame, add_network(graph, network, INPUT), OUTPUT)
    words = {
        "format": "pushforward",
        "latent": json.dumps(describe(latent), allow_nan=False),
        "about": json.dumps(dict(about), allow_nan=False),
        **more,
    }
    write_atomically(path, graph.model({INPUT: network.in_size}, {OUTPUT: frame.dim}, words))


def describe(latent: Latent) -> dict[str, Any]:
    """Return the law of the latents as JSON values: its class and its fields."""
    if not isinstance(latent, Normal | Uniform | NormalMixture | IndependentMixtures):
        raise TypeError(f"`latent` must be a law of ours to be exported; got {type(latent).__name__}.")
    fields = {field.name: getattr(latent, field.name) for field in dataclasses.fields(latent)}
    plain = {name: v if isinstance(v, int) else np.asarray(v).tolist() for name, v in fields.items()}
    return {"law": type(latent).__name__, **plain}
