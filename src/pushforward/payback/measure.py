"""The measuring: the sampler's draws and NUTS' effective ones, timed on this machine."""

import statistics
import time
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Algorithm, Target, aligned
from pushforward.checks import check_count, check_key, check_positive
from pushforward.frame import Frame, InFrame
from pushforward.operations import one_by_one
from pushforward.optional import need
from pushforward.payback.record import BreakEven
from pushforward.sampler import Sampler


def break_even(
    key: Key[Array, ""],
    sampler: Sampler,
    target: Target,
    *,
    budget: float = 60.0,
    train_seconds: float | None = None,
    num_chains: int = 4,
    num_warmup: int = 500,
    num_draws: int = 100_000,
) -> BreakEven:
    """Say after how many effective draws training has paid for itself against NUTS on this machine.

    NUTS runs on the target in units of the sampler's own draws (their medians and spreads), which spares it
    the search for the target, and its compilation is not counted: the answer errs in its favour. An
    effective draw of NUTS is one of ArviZ's bulk ESS, of the coordinate that mixes worst.
    Needs the extras `mcmc` and `draws`.

    **Arguments:**

    - `budget`: seconds after which NUTS is not asked for more; its warm-up always ends, and at least one
        round of draws follows it.
    - `train_seconds`: what training took; otherwise the sampler's story says it.
    - `num_chains`, `num_warmup`: of NUTS; `num_draws`: of the sampler, in one timing.
    """
    check_key(key)
    _check_pair(sampler, target)
    target = aligned(target, sampler.parameters)
    budget, num_chains = check_positive(budget, "budget"), check_count(num_chains, "num_chains", at_least=2)
    num_warmup = check_count(num_warmup, "num_warmup", at_least=20)
    num_draws = check_count(num_draws, "num_draws", at_least=100)
    train_seconds = _told_seconds(sampler) if train_seconds is None else train_seconds
    spent = check_positive(train_seconds, "train_seconds")
    need("Counting effective draws stands on", "arviz", "draws")
    from pushforward.payback.nuts import algorithm  # needs an extra, too

    keys = jax.random.split(key, 3)
    frame, seconds = units_and_pace(keys[0], sampler, num_draws)
    inside = InFrame(one_by_one(target), frame)
    nuts = run_chains(keys[1:], algorithm(inside, num_chains, num_warmup), target.name, budget)
    return BreakEven(target.name, spent, seconds, **nuts)


def _check_pair(sampler: Sampler, target: Target) -> None:
    if not isinstance(sampler, Sampler):
        raise TypeError(f"`sampler` must be a Sampler, such as `fit.sampler`; got {type(sampler).__name__}.")
    if not isinstance(target, Target):
        hint = "`pf.Target.from_log_density(fn, dim=...)` makes one of a function."
        raise TypeError(f"`target` must be a Target; got {type(target).__name__}. {hint}")
    if sampler.dim != target.dim:
        raise ValueError(f"`target` must have the sampler's {sampler.dim} coordinates; it has {target.dim}.")
    trained = sampler.about.get("target")
    if isinstance(trained, str) and trained != target.name:
        raise ValueError(
            f"`target` must be what the sampler was trained on, {trained!r}; got {target.name!r}."
        )


def _told_seconds(sampler: Sampler) -> float:
    """Return how long training took by the sampler's story, which may be a stranger's."""
    try:
        phases = sampler.about["phases"]
        return check_positive(sum(check_positive(each["seconds"], "s", zero=True) for each in phases), "s")
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            "the sampler's story does not say how long its training took. Give `train_seconds`, the "
            "wall-clock time of `fit`."
        ) from None


def units_and_pace(key: Key[Array, ""], sampler: Sampler, num_draws: int) -> tuple[Frame, float]:
    """Return the units of the sampler's draws, and the seconds that one of them takes: a median of five."""
    x = np.asarray(sampler.sample(key, num_draws), np.float64)
    times = [_timed(sampler.sample, key, num_draws)[1] for _ in range(5)]
    # Quartiles and not standard deviations, which heavy tails make useless.
    low, centre, high = np.quantile(x, (0.25, 0.5, 0.75), axis=0)
    scale = (high - low) / 1.349
    if not np.all(np.isfinite(centre)) or not np.all(scale > 0):
        raise ValueError("`sampler` must give finite draws that differ from each other; its draws do not.")
    parts = (centre, scale, 0 * scale, 0 * scale, np.eye(x.shape[1]))
    frame = Frame(*(jax.device_put(part.astype(sampler.frame.centre.dtype)) for part in parts))
    return frame, statistics.median(times) / num_draws


def run_chains(
    keys: Key[Array, "2"],
    chains: Algorithm,
    name: str,
    budget: float,
    *,
    sweeps: int = 250,
    enough: int = 2_000,
) -> dict[str, Any]:
    """Run chains on the target `name` until they have shown their pace: NUTS' figures of `BreakEven`.

    The clock is looked at after so many `sweeps` of every chain; after `enough` effective draws, the cost of
    each is known to a few per cent.
    """
    import arviz

    key_init, key_chains = keys
    state, setup = _timed(_compiled(chains.init, key_init), key_init)
    run = _compiled(_sweeps, chains, jax.random.split(key_chains, sweeps), state)

    rounds, divergent, seconds, ess, draws = [], [], 0.0, 0.0, np.empty((0, 0, 0))
    while not rounds or (ess < enough and setup + seconds < budget):
        keys = jax.random.split(jax.random.fold_in(key_chains, len(rounds) + 1), sweeps)
        (state, positions, diverged), passed = _timed(run, chains, keys, state)
        seconds += passed
        rounds.append(np.asarray(positions, np.float64))
        divergent.append(float(diverged))
        draws = np.concatenate(rounds).swapaxes(0, 1)
        if not np.all(np.isfinite(draws)):
            raise ValueError(
                f"NUTS on {name!r} left the numbers: its positions are not finite. "
                "`pf.check_target` says whether the log density and its gradient are."
            )
        # A coordinate that never changes has no effective size: ArviZ says NaN.
        ess = float(np.nan_to_num(np.min(_by_coordinate(arviz.ess, draws, method="bulk"))))
    if ess <= 0.0:
        raise ValueError(
            f"NUTS never moved on {name!r} in {draws.shape[1]:,} steps, so that there is nothing to "
            "compare with. Try a larger `budget`, or `pf.check_target` for what is wrong with the target."
        )
    return {
        "nuts_setup_seconds": setup,
        "nuts_seconds_per_effective_draw": seconds / ess,
        "nuts_draws": draws.shape[0] * draws.shape[1],
        "nuts_ess": ess,
        "nuts_r_hat": float(np.max(_by_coordinate(arviz.rhat, draws))),
        "nuts_divergent": statistics.fmean(divergent),
    }


def _timed(function: Any, *arguments: Any) -> tuple[Any, float]:
    """Return what a function returns, once it is computed, and the seconds that took."""
    started = time.perf_counter()
    return jax.block_until_ready(function(*arguments)), time.perf_counter() - started


def _compiled(function: Any, *arguments: Any) -> Any:
    """Compile `function` for these arguments now, so that no clock counts it."""
    jitted: Any = eqx.filter_jit(function)
    return jitted.lower(*arguments).compile()


def _sweeps(
    chains: Algorithm, keys: Key[Array, " sweeps"], state: Any
) -> tuple[Any, Float[Array, "sweeps chains dim"], Float[Array, ""]]:
    def sweep(state: Any, key: Key[Array, ""]) -> tuple[Any, Any]:
        state, info = chains.step(key, state)
        return state, (state.chains.position, info["divergent"])

    state, (positions, divergent) = jax.lax.scan(sweep, state, keys)
    return state, positions, divergent.mean()


def _by_coordinate(statistic: Any, draws: np.ndarray, **options: Any) -> np.ndarray:
    """Return ArviZ's statistic of every coordinate; `draws` are chains, draws, coordinates."""
    return np.asarray([float(statistic(draws[:, :, j], **options)) for j in range(draws.shape[2])])
