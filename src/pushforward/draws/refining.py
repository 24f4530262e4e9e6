"""A few steps of MCMC from every draw: what the sampler got slightly wrong, its target puts right."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.checks import check_choice, check_count, check_key
from pushforward.metrics.inputs import check_draws
from pushforward.operations import one_by_one
from pushforward.optional import need

TARGET_ACCEPTANCE = {"mala": 0.574, "hmc": 0.8}
NUM_LEAPFROG = 8
BLOCK = 8192  # draws that are moved at once: however many there are, at most two programs are compiled
NUM_TUNING = 512  # draws that the step size is tuned on


class Refinement(NamedTuple):
    """Where the draws ended, and how it went."""

    draws: Float[Array, "n dim"]
    acceptance: Float[Array, " n"]  # of each draw, the mean over its steps
    step_size: float  # in units of the draws' own spread
    num_bad: int  # draws at which the target was not finite to begin with; they stay as they are

    def summary(self, kernel: str, steps: int) -> dict[str, Any]:
        """Return what a reader may want to see, as JSON values."""
        acceptance = np.asarray(self.acceptance)
        return {
            "kernel": kernel, "steps": steps, "step_size": self.step_size,
            "acceptance": float(acceptance.mean()), "never_accepted": int(np.sum(acceptance < 1e-3)),
            "not_finite": self.num_bad,
        }  # fmt: skip


def refine(
    key: Key[Array, ""],
    draws: Float[Array, "n dim"],
    target: Target,
    *,
    steps: int = 10,
    kernel: str = "mala",
    warmup: int = 30,
) -> Refinement:
    """Move every draw by `steps` steps of a Markov chain that leaves `target` as it is.

    Draws of the target stay draws of the target; others come nearer to it, within the basins where they are.
    The chains run in coordinates in which the draws are white. The step size is tuned for `warmup` steps, to
    the usual acceptance (0.574 for MALA, 0.8 for HMC) on a copy of some of the draws, and then stays fixed.
    `kernel` is `"mala"`, one gradient a step, or `"hmc"`, eight, which goes further.
    """
    check_key(key)
    steps, warmup = check_count(steps, "steps"), check_count(warmup, "warmup", at_least=5)
    check_choice(kernel, "kernel", TARGET_ACCEPTANCE)
    if not isinstance(target, Target):
        raise TypeError(f"`target` must be a Target; got {type(target).__name__}.")
    draws = check_draws(draws, dim=target.dim, at_least=2)
    need("`refine` stands on", "blackjax", "mcmc")
    key_tune, key_move = jax.random.split(key)
    points = np.asarray(draws)
    seen, size = _whitened(one_by_one(target), points), min(BLOCK, len(points))
    start = _resized(points, min(NUM_TUNING, size))
    step_size, parts = _tune(seen, key_tune, start, kernel=kernel, num_steps=warmup), []
    for number, first in enumerate(range(0, len(points), size)):
        block, key_block = points[first : first + size], jax.random.fold_in(key_move, number)
        found = _move(seen, key_block, _resized(block, size), step_size, kernel=kernel, num_steps=steps)
        parts.append([np.asarray(part)[: len(block)] for part in found])
    moved, acceptance, usable = (np.concatenate(each) for each in zip(*parts, strict=True))
    if not usable.any():
        raise ValueError(
            f"`target`: the log density of {target.name!r} is not finite at any of the {len(points)} draws. "
            "Are they draws of this target, in its own (unconstrained) coordinates?"
        )
    moved, acceptance = jax.device_put((moved, acceptance))
    return Refinement(moved, acceptance, float(step_size), int(np.sum(~usable)))


class _Whitened(eqx.Module):
    """The target in coordinates `u`, `x = centre + root u`, in which the draws are white."""

    target: Target
    centre: Float[Array, " dim"]
    root: Float[Array, "dim dim"]

    def place(self, u: Float[Array, " dim"]) -> Float[Array, " dim"]:
        return self.centre + self.root @ u

    def log_density(self, u: Float[Array, " dim"]) -> Float[Array, ""]:
        return self.target.log_density(self.place(u))

    def inverse(self, x: Float[Array, " dim"]) -> Float[Array, " dim"]:
        return jax.scipy.linalg.solve_triangular(self.root, x - self.centre, lower=True)


def _whitened(target: Target, points: np.ndarray) -> _Whitened:
    """Take the centre and a Cholesky factor of the points' spread; far tails must not decide either."""
    x = points.astype(np.float64)
    low, centre, high = np.quantile(x, [0.02, 0.5, 0.98], axis=0)
    inner = np.clip(x, low, high)
    covariance = np.atleast_2d(np.cov(inner, rowvar=False))
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 1e-30))
    correlation = covariance / np.outer(scale, scale)
    # With few draws for the dimension the correlations are noise: shrink them accordingly.
    weight = min(0.999, len(x) / (len(x) + 10.0 * x.shape[1]))
    correlation = weight * correlation + (1.0 - weight) * np.eye(len(scale))
    root = scale[:, None] * np.linalg.cholesky(correlation)
    return _Whitened(target, *jax.device_put((centre.astype(points.dtype), root.astype(points.dtype))))


def _resized(points: np.ndarray, size: int) -> Array:
    """Return `size` rows: the first, and the same again from the start where there are too few."""
    return jax.device_put(np.resize(points, (size, points.shape[1])))


def _step(seen: _Whitened, kernel: str, key: Key[Array, ""], state: Any, step_size: Any) -> tuple[Any, Any]:
    """Move all chains once; return their states and acceptances."""
    import blackjax

    def one(key: Key[Array, ""], state: Any) -> tuple[Any, Any]:
        more = () if kernel == "mala" else (jnp.ones_like(state.position), NUM_LEAPFROG)
        step = getattr(blackjax, kernel).build_kernel()
        new, info = step(key, state, seen.log_density, step_size, *more)
        # What is not finite is not taken: neither a proposal that overflowed nor one from where it had.
        good = jnp.isfinite(new.logdensity) & jnp.all(jnp.isfinite(new.logdensity_grad))
        new = jax.tree.map(partial(jnp.where, good), new, state)
        rate = jnp.where(good & jnp.isfinite(info.acceptance_rate), info.acceptance_rate, 0.0)
        return new, rate

    key_length, key_chains = jax.random.split(key)
    if kernel == "hmc":
        # Trajectories of one length can come back to where they began, over and over; of many, they do not.
        step_size = step_size * jax.random.uniform(key_length, minval=0.5)
    return jax.vmap(one)(jax.random.split(key_chains, state.position.shape[0]), state)


def _start(seen: _Whitened, x: Float[Array, "n dim"], kernel: str) -> Any:
    import blackjax

    init = getattr(blackjax, kernel).init
    return jax.vmap(lambda point: init(seen.inverse(point), seen.log_density))(x)


@eqx.filter_jit
def _tune(
    seen: _Whitened, key: Key[Array, ""], x: Float[Array, "n dim"], *, kernel: str, num_steps: int
) -> Float[Array, ""]:
    """Return the step size at which the chains as a whole accept as often as they should."""
    # Robbins-Monro on its logarithm. The mean acceptance of all chains has little noise, so steps may be
    # large at first; the average over the second half is what is returned.
    state = _start(seen, x, kernel)
    usable = jnp.isfinite(state.logdensity)
    first = jnp.log(jnp.asarray(0.5 if kernel == "mala" else 0.4, x.dtype)) - jnp.log(x.shape[1]) / 3.0

    def body(carry: Any, i: Any) -> tuple[Any, Any]:
        state, log_step = carry
        state, rate = _step(seen, kernel, jax.random.fold_in(key, i), state, jnp.exp(log_step))
        mean = jnp.sum(jnp.where(usable, rate, 0.0)) / jnp.maximum(jnp.sum(usable), 1)
        log_step = log_step + (mean - TARGET_ACCEPTANCE[kernel]) * 4.0 / (1.0 + 0.2 * i)
        return (state, log_step), log_step

    _, history = jax.lax.scan(body, (state, first.astype(x.dtype)), jnp.arange(num_steps))
    return jnp.exp(jnp.mean(history[num_steps // 2 :]))


@eqx.filter_jit
def _move(
    seen: _Whitened, key: Key[Array, ""], x: Float[Array, "n dim"], step_size: Float[Array, ""],
    *, kernel: str, num_steps: int,
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Any]:  # fmt: skip
    state = _start(seen, x, kernel)
    begin, finite = state.position, jnp.isfinite(state.logdensity)

    def body(state: Any, i: Any) -> tuple[Any, Any]:
        return _step(seen, kernel, jax.random.fold_in(key, i), state, step_size)

    state, rates = jax.lax.scan(body, state, jnp.arange(num_steps))
    # A draw that never moved comes back bit by bit, and not by way of the other coordinates.
    moved = jnp.any(state.position != begin, axis=1, keepdims=True)
    return jnp.where(moved, jax.vmap(seen.place)(state.position), x), jnp.mean(rates, axis=0), finite
