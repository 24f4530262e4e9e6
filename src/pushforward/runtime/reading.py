"""Read the file of `sampler.save` without JAX; a stranger's file is refused as `pushforward.load` would."""

import json
import os

import numpy as np

from pushforward.container import BadFileError, read
from pushforward.runtime.frame import Frame
from pushforward.runtime.latents import LAWS
from pushforward.runtime.networks import MLP, Coupled, Identity, Modulated
from pushforward.runtime.sampler import Sampler
from pushforward.structure import rebuild

_LAWS, _NETWORKS = tuple(LAWS.values()), (MLP, Modulated, Coupled, Identity)
_CLASSES = {cls.__name__: cls for cls in (*_NETWORKS, Frame, *_LAWS)}


def load(path: str | os.PathLike) -> Sampler:
    """Read a sampler that `pushforward.Sampler.save` wrote. Nothing in the file is executed."""
    text, tensors = read(path)
    try:
        body = json.loads(text)
        structure = dict(body["structure"])
        parts = {name: rebuild(part, tensors, _CLASSES, np.asarray) for name, part in structure.items()}
        latent, network, frame = (parts.pop(name) for name in ("latent", "network", "frame"))
        names = parts.pop("parameters", None)
        kinds = isinstance(latent, _LAWS), isinstance(network, _NETWORKS), isinstance(frame, Frame)
        if parts or tensors or not all(kinds):
            raise ValueError("its parts are not a latent, a network and a frame.")
        parameters = None
        if names is not None:
            from pushforward.parameters import Parameters  # which most samplers do not have

            parameters = Parameters.from_json(names)
        return Sampler(latent, network, frame, dict(body["about"]), parameters)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise BadFileError(f"{path} does not describe a sampler: {error}") from None
