"""Table 2: seconds per 1,000 draws, every method compiled and warmed, interleaved in one run."""

import itertools
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.draws import thin
from pushforward.sampler import Sampler
from reproduce.records import Record
from reproduce.studies.row import Row
from reproduce.studies.two_d.family import algorithm_of
from reproduce.studies.two_d.judge import Judge
from reproduce.studies.two_d.settings import CHAINS
from reproduce.studies.two_d.trained import chain_draws, flow_of, sampler_of
from reproduce.studies.two_d.watch import Store
from reproduce.timing import take_turns

Call = Callable[[Key[Array, ""]], Array]

MANY_SHARE = 3
"""A million draws are timed in a third of the repeats: each is a thousand batches, and as steady."""


def speed_row(row: Row, judge: Judge, store: Store) -> list[Record]:
    """Time every method on one target."""
    s = judge.settings
    kept = {name: sampler_of(row._replace(method=name), judge, store) for name in ("kl", "default")}
    samplers = {name: sampler for name, (sampler, _) in kept.items()}
    calls = _calls(row, judge, samplers)
    repeats = {name: s.slow_repeats if name == "svgd" else s.speed_repeats for name in calls}
    seconds = _interleaved(row.key("speed"), calls, repeats)
    many = {name: _sampling(sampler, s.many_n) for name, sampler in samplers.items()}
    few = dict.fromkeys(many, max(2, s.speed_repeats // MANY_SHARE))
    seconds_many = _interleaved(row.key("many"), many, few)

    found = []
    for name, times in seconds.items():
        mine = row._replace(method=name)
        found.append(s.timing(mine, "seconds_per_1k_draws", times * 1000 / s.speed_n, s.speed_n))
        found.append(s.record(mine, "ratio_to_kl", np.median(times) / np.median(seconds["kl"])))
    for name, times in seconds_many.items():
        mine = row._replace(method=name)
        found.append(s.timing(mine, "seconds_per_1m_draws", times * 1e6 / s.many_n, s.many_n))
    for name in CHAINS:
        saved = (np.median(seconds[name]) - np.median(seconds["kl"])) / s.speed_n
        # Where a peer is as fast as the sampler, training never pays: no finite number.
        draws = kept["kl"][1] / saved if saved > 0 else float("nan")
        found.append(s.record(row._replace(method=name), "break_even", draws))
    return found


def _calls(row: Row, judge: Judge, samplers: dict[str, Sampler]) -> dict[str, Call]:
    """Return for each method one call that makes `speed_n` draws."""
    s = judge.settings
    calls: dict[str, Call] = {}
    for method in CHAINS:
        draw = chain_draws(algorithm_of(method, judge, s.speed_n), s.chain_steps)
        calls[method] = eqx.Partial(draw, n=s.speed_n)
    # How long the flow was trained changes its weights, not its arithmetic.
    algorithm, state, _ = flow_of(row, judge, most=2)
    calls["flow"] = lambda key: algorithm.sample(key, state, s.speed_n)
    calls |= {name: _sampling(sampler, s.speed_n) for name, sampler in samplers.items()}
    pool = _sampling(samplers["default"], s.pool_n)
    calls["default-thin"] = lambda key: thin(pool(key), judge.target, s.speed_n)
    return calls


def _sampling(sampler: Sampler, n: int) -> Call:
    return lambda key: sampler.sample(key, n)


def _interleaved(
    key: Key[Array, ""], calls: dict[str, Call], repeats: dict[str, int]
) -> dict[str, np.ndarray]:
    """Return the seconds of every call: one of each per round, so that a busy spell hits all of them."""
    keys = map(partial(jax.random.fold_in, key), itertools.count())
    taken = take_turns({name: lambda call=call: call(next(keys)) for name, call in calls.items()}, repeats)
    return {name: np.array(values) for name, values in taken.items()}
