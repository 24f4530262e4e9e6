"""Fair times on a machine that others use too: contestants take turns, and the median speaks."""

import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax

Name = TypeVar("Name", bound=Hashable)


class Times(NamedTuple):
    """Seconds of one call: the median over the rounds, and their standard deviation."""

    median: float
    spread: float


def take_turns(
    contestants: Mapping[Name, Callable[[], Any]],
    rounds: int | Mapping[Name, int],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, list[float]]:
    """Return the seconds of each function in each round, after a warm-up; some may have fewer rounds.

    Turns matter more than repeats: whatever slows the machine for a while slows all of them.
    """
    many = dict.fromkeys(contestants, rounds) if isinstance(rounds, int) else rounds
    times: dict[Name, list[float]] = {name: [] for name in contestants}
    for call in contestants.values():
        jax.block_until_ready(call())
    for number in range(max(many.values())):
        for name, call in contestants.items():
            if number < many[name]:
                started = clock()
                jax.block_until_ready(call())
                times[name].append(clock() - started)
    return times


def summary(seconds: list[float]) -> Times:
    """Return median and spread of the rounds of one contestant."""
    return Times(statistics.median(seconds), statistics.stdev(seconds) if len(seconds) > 1 else 0.0)


def interleaved(contestants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Times]:
    """Return the seconds of each function, called in turn `rounds` times after a warm-up."""
    return {name: summary(each) for name, each in take_turns(contestants, rounds).items()}
