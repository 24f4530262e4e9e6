"""One file for modules: weights as safetensors, structure as JSON in its header; reading executes nothing.

A module is written as its class name (looked up in a fixed list when read) and its fields; arrays are
named by their path in the tree. A SHA-256 over structure and tensors makes a flipped bit an error.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
import safetensors.numpy

from pushforward.atomic import write_atomically as write_atomically
from pushforward.container import FORMAT, MAX_HEADER, VERSION, digest, header_size, read
from pushforward.container import BadFileError as BadFileError
from pushforward.structure import rebuild

DTYPES = ("float32", "float64")


def dump(path: str | os.PathLike, parts: Mapping[str, eqx.Module | str], about: Mapping[str, Any]) -> None:
    """Write named modules and what is to be said about them (JSON values) to one file."""
    tensors: dict[str, np.ndarray] = {}
    structure = {name: _describe(part, name, tensors) for name, part in parts.items()}
    body = json.dumps({"structure": structure, "about": dict(about)}, allow_nan=False)
    header = {"format": FORMAT, "version": str(VERSION), "body": body, "sha256": digest(body, tensors)}
    data = safetensors.numpy.save(tensors, metadata=header)
    if header_size(data) > MAX_HEADER:
        raise ValueError(
            f"`about` must be shorter: with it the header takes {header_size(data):,} bytes, of which "
            f"{MAX_HEADER:,} could be loaded again. Keep what is long, such as data, in a file of its own."
        )
    write_atomically(path, data)


def load(
    path: str | os.PathLike, classes: Mapping[str, type[eqx.Module]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `dump` wrote: the parts and their story. Only modules named in `classes` can be built."""
    text, tensors = read(path)
    try:
        body = json.loads(text)
        # Not `jnp.asarray`, which compiles a program of its own for every new shape.
        parts = {
            name: rebuild(part, tensors, classes, jax.device_put) for name, part in body["structure"].items()
        }
        about = dict(body["about"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise BadFileError(f"{path} does not describe a sampler: {error}") from None
    if tensors:
        raise BadFileError(f"{path} holds arrays that nothing uses: {', '.join(sorted(tensors)[:5])}.")
    return parts, about


def _describe(node: Any, path: str, tensors: dict[str, np.ndarray]) -> Any:
    if isinstance(node, jax.Array | np.ndarray):
        array = np.asarray(node)
        if str(array.dtype) not in DTYPES:
            raise TypeError(f"array {path!r} must be float32 or float64 to be saved; got {array.dtype}.")
        if not np.all(np.isfinite(array)):
            raise ValueError(
                f"array {path!r} holds values that are not finite; a file of it could not be loaded."
            )
        tensors[path] = array
        return {"tensor": path}
    if isinstance(node, eqx.Module):
        fields = {
            f.name: _describe(getattr(node, f.name), f"{path}.{f.name}", tensors)
            for f in dataclasses.fields(node)
        }
        return {"module": type(node).__name__, "fields": fields}
    if isinstance(node, tuple):
        return {"tuple": [_describe(part, f"{path}.{i}", tensors) for i, part in enumerate(node)]}
    if node is None or isinstance(node, str | int | float | bool):
        return {"value": node}
    raise TypeError(f"{path!r} holds a {type(node).__name__}, which cannot be saved.")
