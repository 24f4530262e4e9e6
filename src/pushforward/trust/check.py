"""`check`: whether draws can be trusted to come from a target."""

import time
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from pushforward.base import Target, aligned
from pushforward.checks import check_key
from pushforward.draws import Draws
from pushforward.host import generator, into
from pushforward.operations import one_by_one
from pushforward.sampler import Sampler
from pushforward.trust.census import Census
from pushforward.trust.coordinates import choose_frame, look
from pushforward.trust.goodness import goodness_line
from pushforward.trust.hidden import hidden_lines
from pushforward.trust.importance import importance_lines
from pushforward.trust.inputs import SAMPLER, Handed, check_rows, gather
from pushforward.trust.line import Line
from pushforward.trust.modes import modes_line
from pushforward.trust.moves import energies_line, moves_line, refine
from pushforward.trust.reference import reference_lines
from pushforward.trust.report import Pictures, Report
from pushforward.trust.rows import (
    Rows,
    dependence_line,
    duplicates_line,
    find_repeats,
    independent_rows,
    support_line,
    usable_rows,
)
from pushforward.trust.settings import LIMITS, CheckSettings
from pushforward.trust.stein import stein_line
from pushforward.trust.tails import tails_lines


def check(
    key: Key[Array, ""],
    sampler: Any,
    target: Target,
    *,
    reference: Any = None,
    census: Census | None = None,
    settings: CheckSettings | None = None,
) -> Report:
    """Judge draws against a target known only through its log density.

    Several lines of evidence, each a test with its null distribution or a fixed tolerance, share one error
    rate: an exact sampler gets a verdict other than `trust` in at most 5 % of checks. What no line can see:
    modes too narrow or too far for walks uphill, and errors below what `num_draws` draws resolve.

    **Arguments:**

    - `sampler`: a `Sampler`, any function `sample(key, n)`, or an array of draws `(n, dim)` from elsewhere.
        The rows of an array are taken as a chain's, in order: where they are autocorrelated, only as many
        as are worth independent draws are judged.
    - `reference`: draws to be trusted, `(m, dim)`, for two-sample tests; independent, or thinned to be so.
    - `census`: that of the same target, made by `Census.take`, which many samplers may share.
    - `settings`: how hard to look.
    """
    started = time.monotonic()
    check_key(key)
    if not isinstance(target, Target):
        raise TypeError(
            f"`target` must be a Target; got {type(target).__name__}. "
            "Wrap a plain function with `Target.from_log_density(fn, dim=...)`."
        )
    settings = settings or CheckSettings()
    if census is not None and (census.target.dim, census.target.name) != (target.dim, target.name):
        raise ValueError(
            f"`census` must be of the target that is checked, {target.name!r}; it is of "
            f"{census.target.name!r}. Take one with `Census.take(key, target)`."
        )
    if isinstance(sampler, Sampler | Draws):
        target, given = aligned(target, sampler.parameters), target
        # A census of other coordinates would have to be taken again.
        census = census if target is given else None
    if reference is not None:
        reference = check_rows(reference, "reference", target.dim)
        if not np.isfinite(reference).all():
            raise ValueError("`reference` must be finite; some of its rows are not.")
    key_draws, key_rest = jax.random.split(key)
    handed = gather(key_draws, sampler, target, settings.num_draws)
    lines, pictures, judged = _judge(
        key_rest, sampler, one_by_one(target), handed, reference, census, settings
    )
    return Report(
        target=target.name,
        kind=handed.kind,
        num_draws=len(handed.draws),
        num_judged=judged,
        level=settings.level,
        lines=tuple(lines),
        seconds=time.monotonic() - started,
        pictures=pictures,
    )


def _judge(
    key: Key[Array, ""],
    sampler: Any,
    target: Target,
    handed: Handed,
    reference: Any,
    census: Census | None,
    settings: CheckSettings,
) -> tuple[list[Line], Pictures | None, int]:
    keys = iter(jax.random.split(key, 11))
    draws = handed.draws[: LIMITS.most_rows]
    usable = usable_rows(draws, target)
    lines = [support_line(draws, usable)]
    if lines[0].details["constant"] or lines[0].statistic > LIMITS.impossible:
        # So much is wrong that nothing else can be looked at.
        return lines, None, 0
    draws = draws[usable]
    repeats = find_repeats(draws)
    lines.append(duplicates_line(draws, handed.spare, repeats))
    kept = draws if repeats.rejections else draws[repeats.first]
    rows = Rows(kept, 1.0, 1) if handed.kind == SAMPLER else independent_rows(kept, settings.num_draws)
    if rows.time > LIMITS.independent or len(rows.draws) < LIMITS.least_draws:
        lines.append(dependence_line(len(kept), rows))
    judged = rows.draws
    if len(judged) < LIMITS.least_draws // 2:
        return lines, None, len(judged)
    # Coordinates and step from other draws, where there are others: then nothing is used twice.
    spare = judged if handed.spare is None else handed.spare[usable_rows(handed.spare, target)]
    frame = choose_frame(spare)
    view = look(target, frame, judged)
    pilot = into(frame, spare[: settings.num_chains])
    refined = refine(next(keys), view, pilot, settings)
    lines += [
        stein_line(next(keys), view),
        goodness_line(next(keys), view, settings),
        moves_line(next(keys), refined, frame, settings),
        energies_line(next(keys), refined, settings),
    ]
    census = census or Census.take(next(keys), target, settings)
    census = census.extended(next(keys), judged, settings)
    lines.append(modes_line(judged, census, (refined.before, refined.after)))
    lines += hidden_lines(next(keys), target, judged)
    lines += tails_lines(generator(next(keys)), target, judged)
    lines += importance_lines(next(keys), sampler, target, settings.num_draws)
    if reference is not None:
        lines += reference_lines(next(keys), judged, reference, frame, settings)
    return lines, Pictures(*(np.asarray(values)[:2000] for values in refined[:4])), len(judged)
