"""Does anything move when Markov chains set out from the draws? Then it was wrong by at least that much."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import ndtri

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.host import log_det, on_device, out_of
from pushforward.mcmc.langevin import propose
from pushforward.trust.coordinates import View, bounded
from pushforward.trust.line import Line
from pushforward.trust.nulls import flip_test
from pushforward.trust.settings import LIMITS, CheckSettings


class Refined(NamedTuple):
    """Draws and what became of each of them."""

    before: Float[np.ndarray, "n dim"]
    after: Float[np.ndarray, "n dim"]
    energy_before: Float[np.ndarray, " n"]
    energy_after: Float[np.ndarray, " n"]
    acceptance: float
    num_steps: int


def refine(
    key: Key[Array, ""], view: View, pilot: Float[np.ndarray, "m dim"], settings: CheckSettings
) -> Refined:
    """Run a short chain from every draw of the view, in its frame.

    The step is chosen on chains from `pilot`, points of the frame, and then left alone. With a step that does
    not depend on the chain, and drawn anew each time, the steps are a reversible kernel: were the draws
    exact, first and last point of a chain could change places. That symmetry is what the tests on these
    chains rest on. Own code and not BlackJAX's, since a check must work where only the core is installed.
    """
    u, firsts = (on_device(rows[: settings.num_chains]) for rows in (view.u, pilot))
    target, num_steps = view.target, settings.chain_steps
    key_pilot, key_walk = jax.random.split(key)
    numbers = (np.log(1.5 * u.shape[1] ** (-1 / 6)), LIMITS.gain, 0.0)
    first, gain, none = (on_device(np.asarray(each)) for each in numbers)
    # As many steps and, where there are as many draws, chains as later: then one program serves both.
    *_, log_step = _walk(key_pilot, target, firsts, first, gain, num_steps)
    ends, inside, rate, _ = _walk(key_walk, target, u, log_step, none, num_steps)
    ends = np.asarray(ends, np.float64)
    return Refined(
        before=view.x[: len(u)],
        after=out_of(target.frame, ends),
        energy_before=-view.log_density[: len(u)],
        energy_after=log_det(target.frame, ends) - np.asarray(inside, np.float64),
        acceptance=float(rate),
        num_steps=num_steps,
    )


@eqx.filter_jit
def _walk(
    key: Key[Array, ""],
    target: Target,
    u: Float[Array, "n dim"],
    log_step: Float[Array, ""],
    gain: Float[Array, ""],
    num_steps: int,
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Float[Array, ""], Float[Array, ""]]:
    n = len(u)

    def look(x):
        value, slope = jax.vmap(jax.value_and_grad(target.log_density))(x)
        good = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope), axis=1)
        return jnp.where(good, value, -jnp.inf), jnp.where(good[:, None], slope, 0.0)

    def body(carry, key_one):
        x, value, slope, log_step = carry
        key_noise, key_step, key_accept = jax.random.split(key_one, 3)
        step = jnp.exp(log_step - LIMITS.step_spread * jax.random.uniform(key_step, (n, 1), x.dtype))
        new, new_value, new_slope, log_ratio = propose(
            key_noise, x, slope, step, look, longest=LIMITS.longest_drift
        )
        yes = jnp.log(jax.random.uniform(key_accept, (n,), x.dtype)) < new_value - value + log_ratio
        x, slope = (jnp.where(yes[:, None], a, b) for a, b in ((new, x), (new_slope, slope)))
        rate = jnp.mean(yes)
        log_step = log_step + gain * (rate - LIMITS.acceptance)
        return (x, jnp.where(yes, new_value, value), slope, log_step), rate

    carry = (u, *look(u), log_step)
    (u, value, _, log_step), rates = jax.lax.scan(body, carry, jax.random.split(key, num_steps))
    return u, value, jnp.mean(rates), log_step


def moves_line(key: Key[Array, ""], refined: Refined, frame: Frame, settings: CheckSettings) -> Line:
    """Return the test that no functional moves: means, spreads, products of coordinates, the energy."""
    before, after = (bounded(frame, x) for x in (refined.before, refined.after))
    names, differences = _functionals(before, after, refined)
    found = flip_test(key, differences, settings.num_bootstraps)
    worst, bounds = found.worst, error_bounds(refined)
    means, sds = np.array(bounds["mean"]), np.array(bounds["sd"])
    i, j = int(np.argmax(means)), int(np.argmax(sds))
    words = f"Moves most: {names[worst]} (t = {found.each[worst]:+.1f})."
    if max(means[i], sds[j]) > 0:
        words += f" Wrong by at least: mean of x[{i}] {means[i]:.2f} sd, sd of x[{j}] {sds[j]:.0%}."
    return Line(
        name="moves",
        title=f"{refined.num_steps} steps of MALA from the draws",
        statistic=float(abs(found.each[worst])),
        measure=f"largest |t| of {len(names):,} paired differences",
        null=f"{settings.num_bootstraps:,} flips of sign, {len(refined.before):,} chains",
        p_value=found.p_value,
        tested=min(1.0, refined.acceptance / LIMITS.still),
        grave=bool(max(means[i], sds[j]) > LIMITS.grave_effect),
        found=words,
        advice="Refining by MALA moves the draws: use the refined ones, or train longer.",
        details={"acceptance": refined.acceptance, "at_least": bounds, "worst": names[worst]},
    )


def _functionals(
    before: np.ndarray, after: np.ndarray, refined: Refined
) -> tuple[list[str], Float[np.ndarray, "n h"]]:
    dim = before.shape[1]
    rows, columns = np.triu_indices(dim if dim <= LIMITS.products else 0, 1)
    # Ranks, since an energy can be as heavy-tailed as it likes.
    pooled = np.concatenate([refined.energy_before, refined.energy_after])
    ranks = (np.searchsorted(np.sort(pooled), pooled) / len(pooled)).reshape(2, -1, 1)
    first, last = (
        np.concatenate([v, v**2, v[:, rows] * v[:, columns], energy], axis=1)
        for v, energy in zip((before, after), ranks, strict=True)
    )
    names = [f"mean of x[{i}]" for i in range(dim)] + [f"spread of x[{i}]" for i in range(dim)]
    names += [f"x[{i}] times x[{j}]" for i, j in zip(rows, columns, strict=True)] + ["energy"]
    return names, last - first


def error_bounds(refined: Refined, level: float = 0.05) -> dict[str, list[float]]:
    """Return lower bounds on the error of each mean, in sd, and of each sd, as a share; 0 where none shows.

    Chains move towards the target and no farther, so that what moved was off by at least the move. All
    bounds hold at once with the chance `1 - level` (Bonferroni).
    """
    x, y = refined.before, refined.after
    n, dim = x.shape
    times = -float(ndtri(level / (4 * dim)))
    sd = x.std(axis=0) + 1e-300
    shift = (y - x) / sd
    means = np.abs(shift.mean(axis=0)) - times * shift.std(axis=0) / np.sqrt(n)
    squares = ((y - y.mean(axis=0)) ** 2 - (x - x.mean(axis=0)) ** 2) / sd**2
    spreads = np.abs(np.sqrt(np.maximum(1.0 + squares.mean(axis=0), 0.0)) - 1.0)
    spreads -= 0.5 * times * squares.std(axis=0) / np.sqrt(n)
    return {"mean": np.maximum(means, 0.0).tolist(), "sd": np.maximum(spreads, 0.0).tolist()}


def energies_line(key: Key[Array, ""], refined: Refined, settings: CheckSettings) -> Line:
    """Return a Kolmogorov-Smirnov test of paired energies `-log q`, which sees tails.

    At each of many levels `t`, taken from both sides together, the share of draws below `t` is compared
    with that of the refined draws; the largest standardised gap counts, and flips of sign give its law.
    """
    before, after = refined.energy_before, refined.energy_after
    tails = np.array(LIMITS.energy_tails)
    shares = np.concatenate([tails, np.linspace(0.05, 0.95, LIMITS.energy_levels), 1.0 - tails[::-1]])
    levels = np.quantile(np.concatenate([before, after]), shares)
    gaps = (after[:, None] <= levels).astype(np.float32) - (before[:, None] <= levels)
    found = flip_test(key, gaps, settings.num_bootstraps)
    worst = found.worst
    gap = float(np.abs(gaps.mean(axis=0)).max())
    more = "more" if gaps[:, worst].mean() > 0 else "less"
    return Line(
        name="energies",
        title="Energies before and after",
        statistic=gap,
        measure="largest gap of the distribution functions",
        null=f"{settings.num_bootstraps:,} flips of sign, {len(shares)} levels",
        p_value=found.p_value,
        grave=gap > LIMITS.grave_gap,
        found=f"Refined draws lie {more} often below the energy that {shares[worst]:.1%} stay below "
        f"(t = {found.each[worst]:+.1f}).",
        advice="Tails or core hold too much or too little: look at the energies; refine, or train longer.",
        details={"levels": shares.tolist(), "gaps": gaps.mean(axis=0).tolist()},
    )
