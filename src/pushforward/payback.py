"""When training has paid for itself: a sampler's one-off cost against what NUTS asks for every draw."""

import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Algorithm, Target, aligned
from pushforward.checks import check_count, check_key, check_positive
from pushforward.frame import Frame, InFrame
from pushforward.one_by_one import one_by_one
from pushforward.sampler import Sampler

DRAWS, REPEATS = 100_000, 5
"""Draws of the sampler in one timing, and timings: the median speaks."""

SWEEPS = 250
"""Steps of every chain between two looks at the clock."""

ENOUGH = 2_000
"""Effective draws after which NUTS has shown its pace; its cost for each is then known to a few per cent."""

CONVERGED = 1.05
"""R-hat above which chains disagree."""


@dataclass(frozen=True)
class BreakEven:
    """What a sampler and NUTS cost on this machine; `print` shows it."""

    target: str
    train_seconds: float
    """Wall-clock time of training, compilation included."""
    seconds_per_draw: float
    """Of the sampler; its draws are independent, so that each is an effective one."""
    nuts_setup_seconds: float
    """NUTS' warm-up, which it too pays once; its compilation is not counted."""
    nuts_seconds_per_effective_draw: float
    nuts_draws: int
    nuts_ess: float
    """Bulk effective sample size of the coordinate that mixes worst."""
    nuts_r_hat: float
    nuts_divergent: float
    """Share of NUTS' steps that diverged."""

    @property
    def draws(self) -> float:
        """Effective draws `n` at which `train + n draw = setup + n nuts`; infinite if NUTS stays cheaper."""
        saved = self.nuts_seconds_per_effective_draw - self.seconds_per_draw
        ahead = self.train_seconds - self.nuts_setup_seconds
        if ahead <= 0:
            return 0.0
        return ahead / saved if saved > 0 else float("inf")

    def as_json(self) -> dict[str, Any]:
        """Return all figures as JSON can hold them; `draws` is `None` where it is infinite."""
        return {**asdict(self), "draws": self.draws if np.isfinite(self.draws) else None}

    def rows(self) -> list[tuple[str, str]]:
        """Return names and words, for a table."""
        nuts = (
            f"{_seconds(self.nuts_seconds_per_effective_draw)} for each effective draw, after "
            f"{_seconds(self.nuts_setup_seconds)} of warm-up"
        )
        seen = f"{self.nuts_draws:,} draws worth {self.nuts_ess:,.0f}, R-hat {self.nuts_r_hat:.3f}"
        rows = [
            ("target", self.target),
            ("training", f"{_seconds(self.train_seconds)}, once"),
            ("sampler", f"{_seconds(self.seconds_per_draw)} for each draw"),
            ("NUTS", nuts),
            ("measured on", seen),
            ("break-even", self._verdict()),
        ]
        return rows + [("note", note) for note in self.notes()]

    def notes(self) -> list[str]:
        """Return what to keep in mind."""
        notes = ["A draw of the sampler counts as one only as far as the sampler is right: check it first."]
        if not self.nuts_r_hat < CONVERGED:
            notes.append("NUTS' chains disagree, so that its effective draws may be worth less than counted.")
        if self.nuts_divergent > 0.01:
            notes.append(f"{self.nuts_divergent:.0%} of NUTS' steps diverged: it misses part of the target.")
        if self.nuts_ess < 100:
            notes.append("NUTS gave few effective draws within the budget: its cost is a rough guess.")
        return notes

    def _verdict(self) -> str:
        if self.draws == 0.0:
            return "at once: training took no longer than NUTS' warm-up"
        if not np.isfinite(self.draws):
            return "never: NUTS' effective draws are cheaper than the sampler's"
        return f"after {_rounded(self.draws)} effective draws"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {words}" for name, words in rows)


def break_even(
    key: Key[Array, ""],
    sampler: Sampler,
    target: Target,
    *,
    budget: float = 60.0,
    train_seconds: float | None = None,
    num_chains: int = 4,
    num_warmup: int = 500,
) -> BreakEven:
    """Say after how many effective draws training has paid for itself against NUTS on this machine.

    NUTS runs on the target in units of the sampler's own draws (their medians and spreads), which spares it
    the search for the target, and its compilation is not counted: the answer errs in its favour. An
    effective draw of NUTS is one of ArviZ's bulk ESS, of the coordinate that mixes worst.
    Needs the extras `mcmc` and `draws`.

    **Arguments:**

    - `key`: a typed key.
    - `sampler`, `target`: a sampler and what it was trained on.
    - `budget`: seconds after which NUTS is not asked for more; its warm-up always ends, and at least one
        round of draws follows it.
    - `train_seconds`: what training took; otherwise the sampler's story says it.
    - `num_chains`, `num_warmup`: of NUTS.
    """
    check_key(key)
    _check_pair(sampler, target)
    target = aligned(target, sampler.parameters)
    budget, num_chains = check_positive(budget, "budget"), check_count(num_chains, "num_chains", at_least=2)
    num_warmup = check_count(num_warmup, "num_warmup", at_least=20)
    spent = (
        _train_seconds(sampler) if train_seconds is None else check_positive(train_seconds, "train_seconds")
    )
    arviz, algorithm = _opponents()
    key_draws, key_init, key_chains = jax.random.split(key, 3)
    frame, seconds = _draw(key_draws, sampler)

    nuts = algorithm(InFrame(one_by_one(target), frame), num_chains=num_chains, num_warmup=num_warmup)
    warm_up = _compiled(nuts.init, key_init)
    started = time.perf_counter()
    state = jax.block_until_ready(warm_up(key_init))
    setup = time.perf_counter() - started
    sweeps = _compiled(_sweeps, nuts, key_chains, state)

    chains, divergent, sampling, ess = [], [], 0.0, 0.0
    draws = np.empty((num_chains, 0, target.dim))
    while not chains or (ess < ENOUGH and setup + sampling < budget):
        started = time.perf_counter()
        key_round = jax.random.fold_in(key_chains, len(chains) + 1)
        state, positions, diverged = jax.block_until_ready(sweeps(nuts, key_round, state))
        sampling += time.perf_counter() - started
        chains.append(np.asarray(positions, np.float64))
        divergent.append(float(diverged))
        draws = np.concatenate(chains).swapaxes(0, 1)
        if not np.all(np.isfinite(draws)):
            raise ValueError(
                f"NUTS on {target.name!r} left the numbers: its positions are not finite. "
                "`pf.check_target` says whether the log density and its gradient are."
            )
        # A coordinate that never changes has no effective size: ArviZ says NaN.
        ess = float(np.nan_to_num(np.min(_by_coordinate(arviz.ess, draws, method="bulk"))))
    if ess <= 0.0:
        raise ValueError(
            f"NUTS never moved on {target.name!r} in {len(draws[0]):,} steps, so that there is nothing to "
            "compare with. Try a larger `budget`, or `pf.check_target` for what is wrong with the target."
        )
    return BreakEven(
        target=target.name,
        train_seconds=spent,
        seconds_per_draw=seconds,
        nuts_setup_seconds=setup,
        nuts_seconds_per_effective_draw=sampling / ess,
        nuts_draws=draws.shape[0] * draws.shape[1],
        nuts_ess=ess,
        nuts_r_hat=float(np.max(_by_coordinate(arviz.rhat, draws))),
        nuts_divergent=statistics.fmean(divergent),
    )


def _check_pair(sampler: Sampler, target: Target) -> None:
    if not isinstance(sampler, Sampler):
        raise TypeError(f"`sampler` must be a Sampler, such as `fit.sampler`; got {type(sampler).__name__}.")
    if not isinstance(target, Target):
        raise TypeError(
            f"`target` must be a Target; got {type(target).__name__}. "
            "`pf.Target.from_log_density(fn, dim=...)` makes one of a function."
        )
    if sampler.dim != target.dim:
        raise ValueError(f"`target` must have the sampler's {sampler.dim} coordinates; it has {target.dim}.")
    trained = sampler.about.get("target")
    if isinstance(trained, str) and trained != target.name:
        raise ValueError(
            f"`target` must be what the sampler was trained on, {trained!r}; got {target.name!r}."
        )


def _train_seconds(sampler: Sampler) -> float:
    phases = sampler.about.get("phases")
    phases = phases if isinstance(phases, list) else []
    seconds: list[Any] = [phase.get("seconds") for phase in phases if isinstance(phase, dict)]
    if not seconds or not all(isinstance(s, int | float) and 0 <= s < float("inf") for s in seconds):
        raise ValueError(
            "the sampler's story does not say how long its training took. Give `train_seconds`, the "
            "wall-clock time of `fit`."
        )
    return float(sum(seconds))


def _opponents() -> tuple[Any, Any]:
    try:
        import arviz
    except ImportError as error:
        raise ImportError(
            "Counting effective draws stands on `arviz`, which is not installed. "
            "Install it with `pip install 'pushforward[draws]'`."
        ) from error
    from pushforward.mcmc.nuts import algorithm

    return arviz, algorithm


def _draw(key: Key[Array, ""], sampler: Sampler) -> tuple[Frame, float]:
    """Return the units of the sampler's draws, and the seconds that one of them takes."""
    x, times = np.asarray(sampler.sample(key, DRAWS), np.float64), []
    for _ in range(REPEATS):
        started = time.perf_counter()
        jax.block_until_ready(sampler.sample(key, DRAWS))
        times.append(time.perf_counter() - started)
    # Quartiles and not standard deviations, which heavy tails make useless.
    low, centre, high = np.quantile(x, (0.25, 0.5, 0.75), axis=0)
    scale = (high - low) / 1.349
    if not np.all(np.isfinite(centre)) or not np.all(scale > 0):
        raise ValueError("`sampler` must give finite draws that differ from each other; its draws do not.")
    fields = {
        "centre": centre,
        "scale": scale,
        "bend": 0 * scale,
        "shift": 0 * scale,
        "matrix": np.eye(x.shape[1]),
    }
    dtype = sampler.frame.centre.dtype
    frame = Frame(**{name: jax.device_put(value.astype(dtype)) for name, value in fields.items()})
    return frame, statistics.median(times) / DRAWS


def _compiled(function: Any, *arguments: Any) -> Any:
    """Compile `function` for these arguments now, so that no clock counts it."""
    jitted: Any = eqx.filter_jit(function)
    return jitted.lower(*arguments).compile()


def _sweeps(
    nuts: Algorithm, key: Key[Array, ""], state: Any
) -> tuple[Any, Float[Array, "sweeps chains dim"], Float[Array, ""]]:
    def sweep(state: Any, key: Key[Array, ""]) -> tuple[Any, Any]:
        state, info = nuts.step(key, state)
        return state, (state.chains.position, info["divergent"])

    state, (positions, divergent) = jax.lax.scan(sweep, state, jax.random.split(key, SWEEPS))
    return state, positions, divergent.mean()


def _by_coordinate(statistic: Any, draws: np.ndarray, **options: Any) -> np.ndarray:
    """Return ArviZ's statistic of every coordinate; `draws` are chains, draws, coordinates."""
    return np.asarray([float(statistic(draws[:, :, j], **options)) for j in range(draws.shape[2])])


def _seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _rounded(count: float) -> str:
    """Return a count to three digits: more would promise what timings do not hold."""
    return f"{float(f'{count:.3g}'):,.0f}"
