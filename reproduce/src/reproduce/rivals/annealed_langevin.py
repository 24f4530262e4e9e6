"""Annealed Langevin dynamics of a target with noisy versions: from high noise to low, then denoise."""

from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.checks import check_count, check_positive


@runtime_checkable
class Noisy(Protocol):
    """A target that knows its noisy versions, such as `targets.ImageEnergy`."""

    def noisy_score(self, x: Float[Array, " dim"], sigma: Float[Array, ""]) -> Float[Array, " dim"]:
        """Return the score of the target under noise `N(0, sigma^2 I)`, at one point."""
        ...


class Schedule(NamedTuple):
    """Step `k`: `x <- x + a_k sigma_k^2 score(x, sigma_k) + b_k xi`; the last has `a = 1`, `b = 0`."""

    sigmas: Float[np.ndarray, " steps"]
    shares: Float[np.ndarray, " steps"]
    noises: Float[np.ndarray, " steps"]


def schedule(
    evaluations: int,
    low: float,
    high: float,
    mixing: float,
    *,
    late_mixing: float | None = None,
    late_from: float = 0.0,
) -> Schedule:
    """Return a schedule with geometric noise levels, `evaluations` scores in all.

    A Langevin step of size `2 a sigma_k^2` whose noise is shrunk so that what remains on the image is exactly
    `sigma_{k+1}`: `b_k^2 = sigma_{k+1}^2 - (1 - a)^2 sigma_k^2`. Plain Langevin noise leaves more than the
    next level expects, and speckle at the end.

    **Arguments:**

    - `evaluations`: of the score, for each draw; the last of them denoises.
    - `low`, `high`: the range of noise levels.
    - `mixing`: shares are `mixing / evaluations`, so that their sum does not depend on the number of
        evaluations. Near `log(high / low)` there is hardly any noise, at twice that it is the reverse
        diffusion, above it the images move more.
    - `late_mixing`: in place of `mixing` at noise levels up to `late_from`. There moving about mends what an
        image has wrong; at high levels it changes which image it will be, and shares of kinds become the
        energy's own, errors included.
    """
    count = check_count(evaluations, "evaluations", at_least=2)
    low, high = check_positive(low, "low"), check_positive(high, "high")
    sigmas = np.geomspace(high, low, count)
    following = np.append(sigmas[1:], 0.0)
    least = 1.0 - following / sigmas
    wanted = np.full(count, check_positive(mixing, "mixing"))
    if late_mixing is not None:
        wanted[sigmas <= check_positive(late_from, "late_from")] = check_positive(late_mixing, "late_mixing")
    shares = np.clip(wanted / count, least, 1.0)
    shares[-1] = 1.0
    noises = np.sqrt(np.maximum(following**2 - ((1.0 - shares) * sigmas) ** 2, 0.0))
    return Schedule(*(part.astype(np.float32) for part in (sigmas, shares, noises)))


def anneal(
    key: Key[Array, ""], target: Noisy, x: Float[Array, "n dim"], plan: Schedule
) -> Float[Array, "n dim"]:
    """Return draws of `target` from starts `x` that carry noise `plan.sigmas[0]`.

    One compiled step, called from Python: `lax.scan` takes convolutions off their fast path on a CPU.
    """
    for i, (sigma, share, noise) in enumerate(zip(*plan, strict=True)):
        x = _step(jax.random.fold_in(key, i), target, x, sigma, share, noise)
    return x


@eqx.filter_jit
def _step(key, target, x, sigma, share, noise):
    score = jax.vmap(lambda point: target.noisy_score(point, sigma))(x)
    return x + share * sigma**2 * score + noise * jax.random.normal(key, x.shape)


class Start(NamedTuple):
    """A normal law `N(mean, factor factor^T + sigma^2 I)`: the images' own first two moments under noise."""

    mean: Float[Array, " dim"]
    factor: Float[Array, "dim rank"]

    @classmethod
    def of(cls, images: Float[np.ndarray, "n dim"], rank: int = 128) -> "Start":
        """Read mean and covariance off images; only the `rank` widest directions are kept."""
        mean = images.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(images - mean, rowvar=False))
        kept = np.maximum(values[-rank:], 0.0) ** 0.5 * vectors[:, -rank:]
        return cls(*(jax.device_put(np.asarray(part, np.float32)) for part in (mean, kept)))

    def sample(self, key: Key[Array, ""], num_samples: int, sigma: float) -> Float[Array, "n dim"]:
        """Draw starts."""
        key_shape, key_noise = jax.random.split(key)
        shape = jax.random.normal(key_shape, (num_samples, self.factor.shape[1])) @ self.factor.T
        return self.mean + shape + sigma * jax.random.normal(key_noise, (num_samples, self.mean.shape[0]))
