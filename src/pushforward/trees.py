"""A tree of arrays as a file: it holds numbers only, and whoever reads it brings the structure they fill.

So a hostile file can build nothing.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from pushforward import files
from pushforward.container import FORMAT, VERSION, BadFileError, digest, read


class OtherTreeError(ValueError):
    """A whole file of something else than what is asked for."""


@contextmanager
def one_error(path: str | os.PathLike) -> Iterator[None]:
    """Whatever is wrong with a file is one and the same error."""
    wrong = (KeyError, TypeError, AttributeError, ValueError, IndexError, ArithmeticError, RecursionError)
    try:
        yield
    except (OtherTreeError, BadFileError):
        raise
    except (*wrong, MemoryError) as error:
        raise BadFileError(f"{path} does not describe a checkpoint: {error}") from None


def pack(tree: Any, about: dict[str, Any]) -> bytes:
    """Return a file: floating-point arrays as tensors named by their place, counters and words as JSON."""
    places = jax.tree_util.tree_leaves_with_path(tree)
    arrays = {jax.tree_util.keystr(place): np.asarray(leaf, order="C") for place, leaf in places}
    tensors = {name: array for name, array in arrays.items() if str(array.dtype) in files.DTYPES}
    rest = {name: array for name, array in arrays.items() if name not in tensors}
    integers = {name: {"dtype": str(array.dtype), "value": array.tolist()} for name, array in rest.items()}
    body = json.dumps({**about, "integers": integers})
    words = {"format": FORMAT, "version": str(VERSION), "body": body, "sha256": digest(body, tensors)}
    return safetensors.numpy.save(tensors, metadata=words)


def unpack(
    path: str | os.PathLike, template: Any, check: Callable[[dict[str, Any]], None] = lambda about: None
) -> tuple[Any, dict[str, Any]]:
    """Return a tree like `template` with the file's numbers, and its words; anything amiss is an error.

    `check` looks at the words before the numbers are believed. Other arrays than those of `template` are an
    `OtherTreeError`: the file is whole, but of something else.
    """
    places, structure = jax.tree_util.tree_flatten_with_path(template)
    likes = {jax.tree_util.keystr(place): like for place, like in places}
    with one_error(path):
        body, tensors = read(path)
        about = dict(json.loads(body))
        check(about)
        integers = about.pop("integers")
        kinds = {name: str(array.dtype) for name, array in tensors.items()}
        kinds |= {name: str(each["dtype"]) for name, each in integers.items()}
        if kinds != {name: str(like.dtype) for name, like in likes.items()}:
            raise OtherTreeError("it has other arrays than this fit")
        values = tensors | {name: each["value"] for name, each in integers.items()}
        # Copies: the file's bytes need not stay in memory, and JAX may write to what it is given.
        leaves = [np.array(values[name], like.dtype) for name, like in likes.items()]
        if [leaf.shape for leaf in leaves] != [like.shape for like in likes.values()]:
            raise OtherTreeError("its arrays are of other shapes than this fit's")
    return jax.tree_util.tree_unflatten(structure, jax.device_put(leaves)), about
