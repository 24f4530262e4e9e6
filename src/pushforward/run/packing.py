"""A pytree of arrays as the bytes of one file, and back into the same structure."""

import json
import os
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from pushforward.container import FORMAT, VERSION, BadFileError, digest, read

FLOATS = ("float32", "float64")


def pack(tree: Any, about: dict[str, Any]) -> bytes:
    """Return a file: floating-point arrays as tensors named by their place, counters and words as JSON."""
    tensors, integers = {}, {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name, array = jax.tree_util.keystr(path), np.asarray(leaf)
        if str(array.dtype) in FLOATS:
            tensors[name] = np.asarray(array, order="C")
        else:
            integers[name] = {"dtype": str(array.dtype), "value": array.tolist()}
    body = json.dumps({**about, "integers": integers})
    words = {"format": FORMAT, "version": str(VERSION), "body": body, "sha256": digest(body, tensors)}
    return safetensors.numpy.save(tensors, metadata=words)


def unpack(path: str | os.PathLike, template: Any) -> tuple[Any, dict[str, Any]]:
    """Return a tree like `template` with the file's numbers, and its words; anything amiss is an error."""
    body, tensors = read(path)
    about = json.loads(body)
    if not isinstance(about, dict) or not isinstance(about.get("integers"), dict):
        raise BadFileError(f"{path} is not a checkpoint.")
    integers = about.pop("integers")
    places, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [jax.tree_util.keystr(place) for place, _ in places]
    if set(names) != tensors.keys() | integers.keys() or tensors.keys() & integers.keys():
        raise BadFileError(f"{path} holds other arrays than this fit has.")
    leaves = [
        _leaf(path, name, tensors.get(name), integers.get(name), like)
        for name, (_, like) in zip(names, places, strict=True)
    ]
    return jax.tree_util.tree_unflatten(structure, leaves), about


def _leaf(path: Any, name: str, tensor: np.ndarray | None, integer: Any, like: Any) -> jax.Array:
    if tensor is None:
        try:
            tensor = np.asarray(integer["value"], dtype=np.dtype(like.dtype))
            same = integer["dtype"] == str(like.dtype)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise BadFileError(f"{path}: {name!r} is not a counter.") from None
    else:
        same = tensor.dtype == like.dtype
    if not same or tensor.shape != like.shape:
        raise BadFileError(f"{path}: array {name!r} is of another type or shape than this fit has.")
    # A copy: the file's bytes need not stay in memory, and JAX may write to what it is given.
    return jax.device_put(np.array(tensor))
