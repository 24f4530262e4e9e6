"""One file for modules: weights as safetensors, structure as JSON in its header; reading executes nothing.

A module is written as its class name (looked up in a fixed list when read) and its fields; arrays are
named by their path in the tree. A SHA-256 over structure and tensors makes a flipped bit an error.
"""

import dataclasses
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import safetensors
import safetensors.numpy

FORMAT = "pushforward"
VERSION = 1
MAX_DEPTH = 16
"""No honest tree is deeper; a hostile one shall not exhaust the stack."""

DTYPES = ("float32", "float64")


class BadFileError(ValueError):
    """A file that is not what it should be: truncated, corrupted, of another kind or version."""


def write_atomically(path: str | os.PathLike, data: bytes) -> None:
    """Write a file so that a crash or a full disk leaves whatever was there before."""
    path = Path(path)
    # Not `tempfile`, whose files only their owner may read: a sampler is a file like any other.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = open(temporary, "xb")  # noqa: SIM115
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def dump(path: str | os.PathLike, parts: Mapping[str, eqx.Module], about: Mapping[str, Any]) -> None:
    """Write named modules and what is to be said about them (JSON values) to one file."""
    tensors: dict[str, np.ndarray] = {}
    structure = {name: _describe(part, name, tensors) for name, part in parts.items()}
    body = json.dumps({"structure": structure, "about": dict(about)}, allow_nan=False)
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "body": body,
        "sha256": _digest(body, tensors),
    }
    write_atomically(path, safetensors.numpy.save(tensors, metadata=header))


def load(
    path: str | os.PathLike, classes: Mapping[str, type[eqx.Module]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `dump` wrote: the parts and their story. Only modules named in `classes` can be built."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"`path` must name a saved sampler; there is no file {path}.")
    if path.is_dir():
        raise IsADirectoryError(f"`path` must name a saved sampler file; {path} is a folder.")
    if not path.is_file():
        raise BadFileError(f"{path} is not a regular file. Copy the sampler to one and load that.")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            names = list(file.keys())
            _check_header(path, header)
            for name in names:
                _check_tensor(path, name, file.get_slice(name))
            tensors = {name: file.get_tensor(name) for name in names}
    except safetensors.SafetensorError as error:
        raise BadFileError(
            f"{path} is not a sampler that can be read: {error}. It may be truncated or another kind "
            "of file; save the sampler again."
        ) from None
    if _digest(header["body"], tensors) != header.get("sha256"):
        raise BadFileError(f"{path} is corrupted: its checksum does not match. Save the sampler again.")
    try:
        body = json.loads(header["body"])
        parts = {name: _rebuild(part, tensors, classes, depth=0) for name, part in body["structure"].items()}
        about = dict(body["about"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise BadFileError(f"{path} does not describe a sampler: {error}") from None
    if tensors:
        raise BadFileError(f"{path} holds arrays that nothing uses: {', '.join(sorted(tensors)[:5])}.")
    return parts, about


def _check_header(path: Path, header: Mapping[str, str]) -> None:
    if header.get("format") != FORMAT or "body" not in header:
        raise BadFileError(
            f"{path} is a safetensors file but not a sampler: it lacks the {FORMAT!r} header. "
            "Files come from `sampler.save(path)`."
        )
    if header.get("version") != str(VERSION):
        raise BadFileError(
            f"{path} has format version {header.get('version')!r}; this release reads version {VERSION}. "
            "Install the release that wrote it, or save it again."
        )


def _check_tensor(path: Path, name: str, part: Any) -> None:
    if part.get_dtype() not in ("F32", "F64"):
        raise BadFileError(f"{path}: array {name!r} must be float32 or float64; got {part.get_dtype()}.")


def _digest(body: str, tensors: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(body.encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}:{array.dtype}:{array.shape}:".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


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


def _rebuild(
    node: Any,
    tensors: dict[str, np.ndarray],
    classes: Mapping[str, type[eqx.Module]],
    *,
    depth: int,
) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("its structure is nested too deeply.")
    if "tensor" in node:
        array = tensors.pop(node["tensor"])
        if not np.all(np.isfinite(array)):
            raise ValueError(f"array {node['tensor']!r} holds values that are not finite.")
        # Not `jnp.asarray`, which compiles a program of its own for every new shape.
        return jax.device_put(array)
    if "tuple" in node:
        return tuple(_rebuild(part, tensors, classes, depth=depth + 1) for part in node["tuple"])
    if "module" in node:
        if node["module"] not in classes:
            raise ValueError(f"it names a module {node['module']!r} that this release does not know.")
        cls = classes[node["module"]]
        fields = {
            str(name): _rebuild(part, tensors, classes, depth=depth + 1)
            for name, part in node["fields"].items()
        }
        return cls(**fields)
    value = node["value"]
    if not (value is None or isinstance(value, str | int | float | bool)):
        raise ValueError("it holds a value that is neither text nor number.")
    return value
