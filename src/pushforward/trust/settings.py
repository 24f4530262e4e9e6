"""Every number of a check: how hard it looks, which users may say, and what its lines are held against."""

import dataclasses
from dataclasses import dataclass

from pushforward.checks import check_count, check_positive


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What decides a verdict and is the same for every target.

    A line is flagged by its p-value or beyond a tolerance. If it is also grave, it says `do not trust` in
    place of `caution`.
    """

    # The draws as they come.
    least_draws: int = 200  # below, no line can tell a wrong sampler from an unlucky one
    most_rows: int = 200_000  # rows of an array that are looked at: the first ones of a longer one
    impossible: float = 0.05  # share of draws without a density beyond which nothing else is looked at
    repeats: float = 1e-3  # share of repeats let pass: single precision on a line has some; they do no harm
    same: float = 1e-5  # robust standard deviations of every coordinate within which two draws count as one
    grave_repeats: float = 0.05  # share of repeats
    independent: float = 1.25  # autocorrelation time that independent draws show by chance
    apart: float = 1.5  # autocorrelation times between kept rows: a few percent of the correlation is left
    window: float = 5.0  # times the time itself up to which autocorrelations are summed (Sokal's rule)

    # Coordinates in which draws are compared.
    whitened: int = 20  # draws per coordinate from which a covariance is worth whitening by
    soft: float = 3.0  # standard deviations at which bounded coordinates saturate

    # Means, spreads, shape.
    grave_effect: float = 0.2  # standard deviations (of a spread: its share) that a moment is off
    carried_by: float = 100.0  # draws; an average that fewer carry is not normal
    steps: tuple[float, float] = (0.03, 3.0)  # standard deviations: sizes of steps in bounded identities
    tested: float = 0.5  # share of a line's statistics below which it says too little to be trusted
    still: float = 0.1  # acceptance of short chains below which so small a share of them counts as tested
    bandwidths: int = 4  # of the kernel Stein discrepancy, from the scale of the density to that of the draws
    distance_draws: int = 500  # whose median distance is the typical one
    grave_noise: float = 30.0  # draws; a discrepancy as large as the noise of so few is plain to the eye
    reference_scales: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)  # bandwidths, in typical distances
    grave_distance: float = 2.0  # floors of the sliced distance from a reference

    # Short chains from the draws.
    acceptance: float = 0.57  # that the pilot's step aims at: best for Langevin steps
    step_spread: float = 1.5  # of the logs of steps, below the longest: narrow places are entered too
    # Hidden modes.
    law_rows: int = 3000  # draws that it is fitted to
    law_parts: int = 8  # normals that stand for the draws where hidden modes are looked for
    hidden_share: float = 0.05  # of the mass, for which the resolution of that search is told
    hidden_mass: float = 0.02  # on peaks without draws: less is an error of Laplace's

    # Walks outward.
    tail_draws: int = 2000  # below, nobody knows where one draw in a thousand lies
    tail_dim: int = 32  # coordinates up to which curvature along walks is affordable
    tail_walks: int = 2  # in each direction, from different draws
    tail_steps: int = 14  # beyond the outermost draws, each a quarter longer than the one before
    tail_marks: tuple[float, float, float] = (0.6, 0.9, 0.999)  # shares of the draws within a walk's marks
    tail_alike: float = 1.5  # factor by which a walk and the draws may differ between the marks
    tail_mass: float = 0.01  # beyond the last mark

    longest_drift: float = 3.0  # times the root of the dimension, in steps: a steep slope must not leap away
    gain: float = 0.5  # of the pilot's log step per unit of acceptance; the chains that count have none
    products: int = 60  # coordinates up to which products of two of them are watched as well
    energy_tails: tuple[float, ...] = (0.002, 0.005, 0.01, 0.02)  # outermost levels, on both sides
    energy_levels: int = 19  # even levels between 5 % and 95 %
    grave_gap: float = 0.1  # between the distributions of the energy before and after

    # Basins, and the mass of each.
    valley: float = 2.0  # nats below the lower of two peaks from which a dip between them parts them
    valley_points: int = 16  # looked at between two peaks
    nearest: int = 4  # known peaks that a new one is held against
    weighable: float = 0.75  # of the most peaks kept; beyond so many basins, others must be thought to exist
    low_dim: int = 8  # coordinates up to which every peak gets a component of the particles' start law
    few_peaks: int = 8  # components in more coordinates, unless there are more basins
    wider: float = 2.0  # a component's width, in widths of its peak
    widest: float = 5.0  # the width of the one over all, in widths of the lot
    wide_share: float = 0.2  # the weight of the one over all
    climbers: int = 512  # draws that walks set out from: as many as the search's, so one program serves both
    climb_steps: int = 300
    moderate_dim: int = 16  # coordinates beyond which a sweep is dear, and half as many particles are sent
    crossing: float = 0.05  # share of the lesser basin's chains that cross where there is no valley
    crossings: float = 5.0  # and as many of them at least
    mass_error: float = 0.1  # share of a mass let pass: particles are no better than that at times
    missed: float = 0.1  # share of its mass below which a basin counts as missed
    grave_mass: float = 0.1  # of all, in the wrong basin

    # Importance weights, where the density is known.
    max_k: float = 0.7  # Pareto shape beyond which weights are too heavy-tailed to use (Vehtari et al.)
    min_share: float = 0.1  # effective share of the draws
    rounding: float = 1e-5  # of the largest weight; what differs by less differs by single precision alone
    max_dim: int = 64  # beyond, a Jacobian a draw costs more than it tells, but for maps that know it


LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class CheckSettings:
    """What a check costs and how sure it must be.

    **Arguments:**

    - `num_draws`: how many draws are looked at. With 10,000, an error of a mean below about 0.04 standard
        deviations, or of a standard deviation below 4 %, is invisible; and seldom matters.
    - `level`: the chance that an exact sampler is not trusted, shared by all lines (Holm). The default
        leaves room below 5 % for what is only asymptotically right.
    - `ksd_draws`, `num_bootstraps`: for the kernel test, whose cost grows with the square.
    - `num_chains`, `chain_steps`: short chains from the sampler's own draws.
    - `num_particles`, `census_repeats`: for the search for modes from outside.
    """

    num_draws: int = 10_000
    level: float = 0.03
    ksd_draws: int = 2000
    num_bootstraps: int = 599
    num_chains: int = 4096
    chain_steps: int = 25
    num_particles: int = 4096
    census_repeats: int = 6

    def __post_init__(self):
        least = {"ksd_draws": 100, "num_bootstraps": 99, "num_chains": 100, "chain_steps": 1}
        least |= {"num_draws": LIMITS.least_draws, "num_particles": 256, "census_repeats": 3}
        for name, fewest in least.items():
            check_count(getattr(self, name), name, at_least=fewest)
        if not 0 < check_positive(self.level, "level") < 0.5:
            raise ValueError(f"`level` must lie between 0 and 0.5; got {self.level}.")

    def replace(self, **changes) -> "CheckSettings":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)
