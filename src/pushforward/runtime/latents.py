"""The laws of `pushforward.latents`, drawn by NumPy's own generators."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from pushforward.checks import check_choice, check_count
from pushforward.structure import check_mixture


class _Alike:
    """Independent coordinates that all have the same law."""

    def __init__(self, size: int):
        self.dim = check_count(size, "size")

    def cast(self, dtype: np.dtype) -> Any:
        """Return the law itself, which holds no numbers."""
        return self


class Normal(_Alike):
    """Standard normal latents."""

    def sample(self, rng: np.random.Generator, num_samples: int, dtype: Any = np.float32) -> np.ndarray:
        """Draw `num_samples` rows."""
        return rng.standard_normal((num_samples, self.dim), dtype)


class Uniform(_Alike):
    """Uniform latents on `(-1, 1)^dim`."""

    def sample(self, rng: np.random.Generator, num_samples: int, dtype: Any = np.float32) -> np.ndarray:
        """Draw `num_samples` rows."""
        z = rng.random((num_samples, self.dim), dtype)
        z *= 2.0
        z -= 1.0
        return z


def _parts(rng: np.random.Generator, weights: np.ndarray, num_samples: int) -> np.ndarray:
    """Draw components in the ratio of their weights."""
    ends = np.cumsum(weights, dtype=np.float64)
    chosen = np.searchsorted(ends, rng.random(num_samples) * ends[-1], side="right")
    return np.minimum(chosen, len(ends) - 1)


class NormalMixture:
    """A mixture of normals with full covariances, one for each or one for all."""

    def __init__(self, weights: np.ndarray, means: np.ndarray, choleskys: np.ndarray):
        components, dim = means.shape
        if weights.shape != (components,) or choleskys.shape not in ((components, dim, dim), (1, dim, dim)):
            raise ValueError("weights, means and choleskys of a NormalMixture must agree in size.")
        check_mixture("NormalMixture", {"weights": weights, "choleskys": choleskys})
        self.weights, self.means, self.choleskys, self.dim = weights, means, choleskys, dim

    def cast(self, dtype: np.dtype) -> "NormalMixture":
        """Return the same law with numbers of one type."""
        # The weights stay as they are: they are compared with uniforms and never meet the network.
        return NormalMixture(self.weights, self.means.astype(dtype), self.choleskys.astype(dtype))

    def sample(self, rng: np.random.Generator, num_samples: int, dtype: Any = np.float32) -> np.ndarray:
        """Draw components, then the normals of each component as one product, and put them in their order."""
        chosen = _parts(rng, self.weights, num_samples)
        z = rng.standard_normal((num_samples, self.dim), dtype)
        if len(self.choleskys) == 1:
            return (z @ self.choleskys[0].T + self.means[chosen]).astype(dtype, copy=False)
        order = np.argsort(chosen, kind="stable")
        counts = np.bincount(chosen, minlength=len(self.weights))
        stops = np.cumsum(counts)
        for k in np.flatnonzero(counts):
            part = slice(stops[k] - counts[k], stops[k])
            z[part] = z[part] @ self.choleskys[k].T + self.means[k]
        placed = np.empty_like(z)
        placed[order] = z
        return placed


class IndependentMixtures:
    """Every coordinate on its own, each a mixture of normals on the line."""

    def __init__(self, weights: np.ndarray, means: np.ndarray, scales: np.ndarray):
        if not weights.shape == means.shape == scales.shape or means.ndim != 2 or means.size == 0:
            raise ValueError("weights, means and scales of IndependentMixtures must agree in size.")
        check_mixture("IndependentMixtures", {"weights": weights, "scales": scales})
        self.weights, self.means, self.scales, self.dim = weights, means, scales, len(means)

    def cast(self, dtype: np.dtype) -> "IndependentMixtures":
        """Return the same law with numbers of one type."""
        return IndependentMixtures(self.weights, self.means.astype(dtype), self.scales.astype(dtype))

    def sample(self, rng: np.random.Generator, num_samples: int, dtype: Any = np.float32) -> np.ndarray:
        """Draw column by column: components, then normals put in their places."""
        z = rng.standard_normal((num_samples, self.dim), dtype)
        for j, weights in enumerate(self.weights):
            chosen = _parts(rng, weights, num_samples)
            z[:, j] = self.means[j, chosen] + self.scales[j, chosen] * z[:, j]
        return z


Law: TypeAlias = Normal | Uniform | NormalMixture | IndependentMixtures

LAWS = {cls.__name__: cls for cls in (Normal, Uniform, NormalMixture, IndependentMixtures)}


def law(description: Mapping[str, Any]) -> Law:
    """Return the law that the metadata of an exported sampler describe: `json.loads(metadata["latent"])`.

    Such as `{"law": "Normal", "size": 2}`, or `"NormalMixture"` with lists `weights`, `means`, `choleskys`.
    """
    if not isinstance(description, Mapping):
        raise TypeError(
            f"`description` must be a mapping, `json.loads(...)`; got {type(description).__name__}."
        )
    fields = dict(description)
    build = LAWS[check_choice(fields.pop("law", None), "law", LAWS)]
    try:
        lists: dict[str, Any] = {
            k: np.asarray(v, np.float64) for k, v in fields.items() if isinstance(v, list)
        }
        return build(**fields | lists)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"`description` does not describe a law of latents: {error}") from None
