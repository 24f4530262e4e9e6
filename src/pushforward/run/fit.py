"""`fit`: from a target to a sampler."""

import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward import distributed
from pushforward.base import Target, key_for
from pushforward.checks import check_count, check_duration, check_key, remedied
from pushforward.frozen import plain
from pushforward.machine import versions
from pushforward.operations import one_by_one
from pushforward.preflight.checks import require_target
from pushforward.programs import let_programs_go
from pushforward.recipe.methods import METHODS, Method, changes_of, for_target, method_of
from pushforward.recipe.settings import Settings
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe
from pushforward.run.clock import Clock, Progress
from pushforward.run.driver import Driver
from pushforward.sampler import Sampler
from pushforward.tables import html_table
from pushforward.training.loop import Row
from pushforward.training.outcome import FitError, Outcome


@dataclass(frozen=True)
class Fit:
    """What `fit` hands back."""

    sampler: Sampler
    outcome: Outcome
    recipe: Recipe
    """All numbers and choices, those filled in for the target among them."""
    phases: list[dict[str, Any]]
    """What ran, for how long, and what it found."""
    history: list[Row]
    """Rows of the training loop: step, seconds, losses, KSD."""
    state: State | None = field(default=None, repr=False)
    """Where the last stage left off: `fit(..., start=fit.state)` goes on from what was found."""

    @property
    def settings(self) -> Settings:
        """How the network was trained."""
        return self.recipe.training

    @property
    def seconds(self) -> float:
        """Wall-clock time of all phases."""
        return float(sum(phase["seconds"] for phase in self.phases))

    def __repr__(self) -> str:
        what = f"{self.sampler.about['target']}, method={self.settings.method}"
        return f"Fit({what}, {self.outcome.name.lower()}: {self.outcome.value}; {self.seconds:.0f} s)"

    def _repr_html_(self) -> str:
        rows = [(phase["phase"], f"{phase['seconds']:.1f} s") for phase in self.phases]
        return html_table(f"Fit, {self.outcome.name.lower()}: {self.outcome.value}", ("stage", "time"), rows)


_ELSEWHERE = {
    **{each.name: "Write `method=methods.Default({name}=...)`." for each in fields(Settings)},
    "seed": "The key is the seed: write `fit(jax.random.key(seed), target)`.",
    "num_steps": "Write `steps=...`.",
}
"""What `fit` does not take, and what to write instead."""


@remedied(_ELSEWHERE)
def fit(
    key: Key[Array, ""],
    target: Target,
    method: str | Method | None = None,
    *,
    settings: Settings | None = None,
    recipe: Recipe | None = None,
    steps: int | None = None,
    progress: bool = True,
    throw: bool = True,
    budget: float | str | None = None,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: float = 60.0,
    callback: Callable[[Progress], Any] | None = None,
    start: State | None = None,
) -> Fit:
    """Train a one-shot sampler of `target`.

    **Arguments:**

    - `key`: a typed key; the same key and recipe give the same sampler.
    - `target`: what to sample; `Target.from_log_density(fn, dim=...)` makes one of a function.
    - `method`: `default` (what works, and what nothing said means), one of the paper's: `kl`, `fisher`,
        `combined`, ..., or a method with some choices changed: `methods.KL(width=128, matching=Sliced(4))`.
    - `settings`: instead of a method, how the network is trained: `preset("kl", width=128)`.
    - `recipe`: instead of both, every number of every stage, such as `fit.recipe` of an earlier fit.
    - `steps`: training steps, in place of the method's; if fewer, the stages before do less in proportion.
    - `progress`: show a progress bar on standard error.
    - `throw`: raise `FitError` if training goes wrong, and warn of an `INACCURATE` sampler; else only the
        outcome says so.
    - `budget`: a time such as `"5m"`, or seconds, for which all is planned on this machine. With `steps` or a
        `checkpoint` the fit is the one without a budget, cut when time is over: `OUT_OF_TIME`.
    - `checkpoint`: a folder in which the fit writes down where it stands every `checkpoint_every` seconds.
        Stopped or killed at any moment, the same call goes on from there, to the very same sampler.
    - `callback`: called with every row: a dictionary with the `stage` and its figures, whose `sampler` is the
        sampler as it stands. `True` ends the fit with the outcome `STOPPED`.
    - `start`: the state of an earlier fit of the same target; stages whose work it holds are not run again.

    Ctrl-C hands back the last good sampler, with the outcome `INTERRUPTED`, or is raised where there is none.
    """
    check_key(key)
    end = time.monotonic() + (float("inf") if budget is None else check_duration(budget, "budget"))
    let_programs_go()
    chosen = method_of(method, settings, recipe)
    share = 1.0 if steps is None else check_count(steps, "steps") / chosen.recipe.training.num_steps
    chosen = chosen if steps is None else chosen.replace(num_steps=steps)
    require_target(key_for(key, "preflight"), target)
    numbers = _in_proportion(for_target(chosen.recipe, target), min(share, 1.0))
    # What can go on later, or has been told how far to go, is cut and not planned.
    free = budget is not None and steps is None and checkpoint is None and jax.process_count() == 1
    known = METHODS.get(chosen.name) if free else None
    plans = known is not None and chosen.recipe.training.num_steps == known.recipe.training.num_steps
    limits = {"plans": plans, "show": progress and distributed.is_chief()}
    with _memory(key, target, numbers, checkpoint, checkpoint_every) as memory:
        clock = Clock(numbers, seconds=end - time.monotonic(), memory=memory, callback=callback, **limits)
        seen = one_by_one(target) if numbers.training.main_objective.wants.one_derivative else target
        numbers = numbers.replace(annealing={"num_particles": clock.particles(seen, numbers)})
        driver = Driver(key, start.resumed(seen) if start else State(target=seen), numbers, clock)
        driver.run(chosen.stages)
    return _handed_back(key, target, driver, throw=throw)


def _handed_back(key: Key[Array, ""], target: Target, driver: Driver, *, throw: bool) -> Fit:
    """Return the sampler there is, and raise or warn of what went wrong."""
    state, numbers = driver.state, driver.recipe
    rows = [] if state.result is None else list(state.result.rows)
    last = rows[-1] if rows and not state.reverted else {}
    seen = {name: last[name] for name in ("ksd_imq_v", "inside") if np.isfinite(last.get(name, np.nan))}
    if state.parts is not None:
        numbers = numbers.replace(num_steps=state.parts.num_steps)
    about = {
        "target": target.name,
        "method": numbers.training.method,
        "settings": numbers.training.plain(),
        "changed": changes_of(numbers),
        "digest": numbers.digest(),
        "version": versions().get("pushforward"),
        "outcome": state.outcome.name,
        "metrics": seen | state.metrics,
        "phases": driver.phases,
        **({"why": state.why} if state.why else {}),
    }
    # What is not finite has no word in JSON.
    story = json.loads(json.dumps(plain(about)), parse_constant=lambda name: None)
    sampler = state.sampler(json.dumps(story), target.parameters)
    done = Fit(sampler, state.outcome, numbers, driver.phases, rows, state)
    if throw and state.why and not state.outcome.broken:
        warnings.warn(
            f"{state.outcome.value}: {state.why} Use `check` before believing it, `refine` its draws, or "
            "train for longer.",
            stacklevel=4,
        )
    if throw and state.outcome.broken:
        raise FitError(_why_broken(key_for(key, "failure"), target, done, state.why), done)
    return done


def _why_broken(key: Key[Array, ""], target: Target, done: Fit, why: str) -> str:
    """Return the message of the error that a broken fit raises.

    Of one that diverged, it names the coordinates in which the target broke at the last finite draws.
    """
    step = done.history[-1]["step"] if done.history else 0
    if done.outcome is not Outcome.DIVERGED:
        # What was raised, without asking the target again.
        return f"{done.outcome.value} (after step {step}): {why} `error.fit.sampler` holds it."
    x = done.sampler.sample(key, 1024)
    broken = ~np.isfinite(jax.vmap(target.score)(x))
    where = "the target is finite at the last good draws, so the step itself overflowed"
    if broken.any():
        coordinates = np.flatnonzero(broken.any(axis=0))[:5].tolist()
        where = f"the target's score is not finite in coordinate(s) {coordinates}"
    bad = np.flatnonzero(~np.isfinite(jax.vmap(target.log_density)(x)) | broken.any(axis=1))
    example = f" For instance at x = {np.asarray(x[bad[0]])[:5].tolist()}." if bad.size else ""
    return (
        f"{done.outcome.value} (step {step}): {where}.{example} Try a smaller `learning_rate`, or mend the "
        "log density there; `error.fit.sampler` holds the last finite sampler."
    )


def _in_proportion(recipe: Recipe, share: float) -> Recipe:
    """Return a recipe whose stages before and after the training do only a share of their work as well."""
    annealing, maps = recipe.annealing, recipe.maps
    assert annealing.num_particles is not None
    if share == 1.0:
        return recipe
    few = max(annealing.least_on_memory, int(share * annealing.num_particles))
    names = ("steps_first", "steps_next", "steps_to_choose")
    return recipe.replace(
        annealing={"num_particles": min(few, annealing.num_particles)},
        maps={name: max(1, int(share * getattr(maps, name))) for name in names},
        reweight={"marginal_steps": max(1, int(share * recipe.reweight.marginal_steps))},
    )


@contextmanager
def _memory(key: Key[Array, ""], target: Target, recipe: Recipe, folder: Any, every: float) -> Iterator[Any]:
    """Yield the fit's memory outside the process, if it has one.

    Of many processes the chief alone writes; the others have a folder for what it hands to them.
    """
    many, chief = jax.process_count() > 1, distributed.is_chief()
    if folder is None and not many:
        yield None
        return
    from pushforward.run.checkpoint import Checkpoint
    from pushforward.run.identity import identity_of

    with tempfile.TemporaryDirectory() as passing:
        here = folder if folder is not None and chief else passing
        identity = identity_of(key, target, recipe)
        with closing(Checkpoint(here, identity, every=every, writes=chief, after_loss=folder)) as memory:
            yield memory
