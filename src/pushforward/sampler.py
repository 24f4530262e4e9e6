"""What a user keeps: a latent law, a network and a frame; one pass from latent to draw."""

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.checks import check_choice, check_count, check_key
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Latent, Normal, NormalMixture, Uniform
from pushforward.networks import MLP, Coupled, Identity, Invertible, Modulated
from pushforward.networks.invertible import log_density
from pushforward.parameters.record import Parameters
from pushforward.streaming import MAX_ROWS, Often, Plain, drawn, gather, is_traced, stream_iid, stream_sobol
from pushforward.tables import brief, html_table

if TYPE_CHECKING:
    from pushforward.draws.record import Draws


class _Classes(dict):
    """What a file may name: the classes of this package, and networks that other installed packages add."""

    def __missing__(self, name: str) -> type:
        from pushforward import extensions  # which few files ask for

        remedy = extensions.remedy(extensions.NETWORKS, name)
        if remedy:
            raise ValueError(remedy)
        return extensions.extensions(extensions.NETWORKS)[name].load()


_PARTS = ("latent", "network", "frame")
_STREAMS = {"iid": stream_iid, "sobol": stream_sobol}
_LAWS = (Normal, Uniform, NormalMixture, IndependentMixtures)
_CLASSES = _Classes({c.__name__: c for c in (MLP, Modulated, Coupled, Identity, *_LAWS, Frame)})


class Sampler(eqx.Module):
    """A one-shot sampler `x = frame(network(z))`, `z` drawn from `latent`.

    `about` says where it came from (target, method, settings, metrics): JSON values, kept with it on disk.
    It is stored as text because a static field must be hashable.
    """

    latent: Latent
    network: Any
    frame: Frame
    about_json: str = eqx.field(static=True, default="{}")
    parameters: Parameters | None = eqx.field(static=True, default=None)
    """Names, shapes and constraints of what the coordinates stand for, if the target said so."""

    def __check_init__(self):
        sizes = (self.latent.dim, self.network.in_size, self.network.out_size, self.frame.dim)
        if sizes[0] != sizes[1] or sizes[2] != sizes[3] or min(sizes) < 1:
            raise ValueError(
                f"latent ({sizes[0]}), network ({sizes[1]} -> {sizes[2]}), frame ({sizes[3]}) must fit."
            )
        if self.parameters is not None and self.parameters.dim != sizes[3]:
            raise ValueError(f"parameters ({self.parameters.dim}) and frame ({sizes[3]}) must fit.")

    @property
    def _parts(self) -> tuple[Latent, Any, Frame]:
        return self.latent, self.network, self.frame

    def __hash__(self) -> int:
        # Not of the arrays, which have none: `jax.jit(sampler.log_density)` asks for one.
        return hash(jax.tree.structure(self))

    def __repr__(self) -> str:
        return f"Sampler({', '.join(words for _, words in self._story())})"

    def _repr_html_(self) -> str:
        return html_table("Sampler", ("", ""), self._story())

    def _story(self) -> list[tuple[str, str]]:
        """Return the few words that say which sampler this is."""
        about = self.about
        target = about.get("target")
        told = {**about, "target": target.get("name") if isinstance(target, dict) else target}
        rows = [(name, str(told[name])[:80]) for name in ("target", "method", "outcome") if told.get(name)]
        to = f"{self.dim} coordinates"
        if self.parameters is not None:
            to = brief({item.name: item.shape for item in self.parameters.items})
        latent, network = type(self.latent).__name__, type(self.network).__name__
        return [*rows, ("map", f"{latent}({self.latent.dim}) -> {network} -> {to}")]

    @property
    def dim(self) -> int:
        """Coordinates of a draw."""
        return self.frame.dim

    @property
    def about(self) -> dict[str, Any]:
        """The sampler's story: target, method, settings, metrics."""
        return json.loads(self.about_json)

    def __call__(self, z: Float[Array, " latent"]) -> Float[Array, " dim"]:
        """Map one latent to one draw."""
        _check_point(z, "z", "one latent", self.latent.dim, "sampler")
        return self.frame(self.network(jnp.asarray(z, float)))

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the normalised log density of the draws' own law at one point, exactly.

        It works under `jit`, `grad` and `vmap`, which many points need: `jax.vmap(sampler.log_density)(x)`.
        The map must know its inverse, as that of the default method does in more than three dimensions, and
        that of `network="coupled"` from two on.
        """
        if not isinstance(self.network, Invertible):
            raise TypeError(_no_density(self.network))
        _check_point(x, "x", "one point", self.dim, "sampler.log_density")
        u = self.frame.inverse(jnp.asarray(x, float))
        return log_density(self.network, self.latent, u) - self.frame.log_det(u)

    def sample(
        self, key: Key[Array, ""], num_samples: int, *, latents: str = "iid", start: int = 0
    ) -> Float[Array, "n dim"]:
        """Draw `num_samples` points in one pass.

        Draw `i` depends on the key and `i` alone: asking for ten or for ten million gives the same first
        ten. At most two programs are compiled, whatever `num_samples` is; a number that is asked for again
        and again gets a program of its own, which is faster. Under `jit`, `vmap` over keys and `grad` the
        same draws become part of the program that is made.

        **Arguments:**

        - `key`, `num_samples`: a typed key, and how many.
        - `latents`: `"iid"`, or `"sobol"` for a scrambled Sobol sequence: the draws are then no longer
            independent of each other, but averages over them converge faster.
        - `start`: the number of the first draw: many machines can make one set of draws, each its own rows.
        """
        num_samples, start, stream = _checked(key, num_samples, latents, start)
        if stream is stream_iid and start == 0:
            often = vars(self).setdefault("_often", Often())
            if draw := often.program(num_samples, lambda: self._parts):
                return draw(key)
        if is_traced(self._parts, key):
            if stream is stream_sobol:
                raise ValueError(
                    '`latents="sobol"` takes its points from SciPy, which `jit`, `vmap` and `grad` cannot '
                    'follow: draw outside of them, or use `latents="iid"`.'
                )
            return drawn(self._parts, key, num_samples, start)
        # Not `jnp.asarray`, which compiles a program of its own for every new shape.
        return jax.device_put(gather(stream(self._parts, key, num_samples, start), num_samples))

    if not TYPE_CHECKING:
        sample = Plain(sample)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_often"}

    def draws(self, key: Key[Array, ""], num_samples: int, *, latents: str = "iid") -> "Draws":
        """Draw as `sample` does, and name the draws: `draws["theta"]`, inside their constraints.

        They can be thinned, refined by MCMC, saved in several formats and handed to ArviZ; see `Draws`.
        """
        from pushforward.draws.record import Draws  # of no use to a fit

        x = self.sample(key, num_samples, latents=latents)
        return Draws.of(x, self.parameters, {"target": self.about.get("target"), "latents": latents})

    def stream(
        self, key: Key[Array, ""], num_samples: int, *, latents: str = "iid", start: int = 0
    ) -> Iterator[np.ndarray]:
        """Yield the rows of `sample(key, num_samples, start=start)` block by block, in bounded memory."""
        # Checked here and not in the generators, whose bodies wait for the first block to be asked for.
        num_samples, start, stream = _checked(key, num_samples, latents, start)
        if is_traced(self._parts, key):
            raise TypeError(
                "`stream` yields NumPy arrays, which cannot be part of a program that JAX compiles. Inside "
                "`jit`, `vmap` and `grad` use `sample`."
            )
        return stream(self._parts, key, num_samples, start)

    def save(self, path: str | os.PathLike) -> None:
        """Write the sampler to one file (safetensors with a JSON header), atomically."""
        from pushforward import files  # of no use to a fit

        files.dump(path, dict(zip(_PARTS, self._parts, strict=True)) | self._names(), self.about)

    def _names(self) -> dict[str, str]:
        # As text: whoever reads it, with JAX or without, checks it by building it anew.
        return {} if self.parameters is None else {"parameters": self.parameters.to_json()}

    def export(self, path: str | os.PathLike) -> None:
        """Write the map from latents to draws as an ONNX file, which needs neither JAX nor Python to run.

        Input `latents` of shape `(n, latent)`, output `draws` of shape `(n, dim)`: the coordinates that
        `sample` gives. The law of the latents, the story and the names are in the file's metadata, as JSON.
        The name of the file must end in `.onnx`. Needs the extra `export`.
        """
        from pushforward.export import write_onnx  # of no use to those who only draw

        write_onnx(path, *self._parts, self.about, self._names())


def load(path: str | os.PathLike) -> Sampler:
    """Read a sampler that `Sampler.save` wrote, or that of the folder of a run.

    Nothing in the file is executed.
    """
    from pushforward import files

    parts, about = files.load(path, _CLASSES)
    try:
        latent, network, frame = (parts.pop(name) for name in _PARTS)
        names = parts.pop("parameters", None)
        if parts or not isinstance(latent, Latent) or not isinstance(frame, Frame):
            raise ValueError("its parts are not a latent, a network and a frame.")
        parameters = None if names is None else Parameters.from_json(names)
        return Sampler(latent, network, frame, json.dumps(about), parameters)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise files.BadFileError(f"{path} does not describe a sampler: {error}") from None


def _checked(key: Any, num_samples: Any, latents: Any, start: Any) -> tuple[int, int, Callable]:
    """Return how many draws, the number of the first, and what yields them."""
    check_key(key, each="jax.vmap(lambda key: sampler.sample(key, n))(keys)")
    num_samples = check_count(num_samples, "num_samples")
    start = check_count(start, "start", at_least=0)
    if start + num_samples > MAX_ROWS:
        raise ValueError(f"`start + num_samples` must be at most {MAX_ROWS:,}; use another key beyond.")
    return num_samples, start, _STREAMS[check_choice(latents, "latents", _STREAMS)]


def _check_point(x: Any, argument: str, what: str, dim: int, function: str) -> None:
    shape = np.shape(x)
    if shape != (dim,):
        hint = f" Write `jax.vmap({function})({argument})`." if shape[1:] == (dim,) else ""
        raise ValueError(f"`{argument}` must be {what} of shape ({dim},); got shape {shape}.{hint}")


def _no_density(network: Any) -> str:
    # A network may know what to do instead.
    return getattr(network, "no_density", None) or (
        f"the density of this sampler is not known, since its map, {type(network).__name__}, has no inverse "
        "in closed form. The default method's map has one in more than three dimensions, and every method's "
        'has one with `preset(method, network="coupled", extra_latents=0)`, from two dimensions on.'
    )
