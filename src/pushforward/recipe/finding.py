"""The numbers of how mass is found: walks, places, proposals."""

from dataclasses import dataclass

from pushforward.frozen import Record


@dataclass(frozen=True, kw_only=True)
class Dimensions(Record):
    """Numbers of coordinates at which the method changes."""

    some: int = 32  # beyond, a round through a map is dear
    many: int = 100  # beyond, curvature and maps of particles are too dear


@dataclass(frozen=True, kw_only=True)
class Search(Record):
    """Stage `search`: uphill walks, and places that known peaks do not explain."""

    num_walks: int = 512  # walks from afar
    num_walks_many: int = 64  # beyond `many` dimensions, where a walk is dear and peaks are seldom many
    radii: tuple[float, float] = (1e-2, 1e4)  # distances at which walks begin: no unit is assumed
    strides: tuple[int, ...] = (0, 5, 5, 5, *[15] * 20)  # steps of those: enough to cross six orders
    num_seen: int = 64  # walks whose places after each stride are kept
    first_step: float = 0.1  # of a walk, next to the distance at which it begins
    grow: float = 1.3  # factor of a coordinate's step where its slope keeps its sign (RPROP's)
    shrink: float = 0.5  # and where the sign changes
    rounds: int = 10  # of further walks at most
    round_steps: int = 150  # steps of those, which begin nearer
    round_deviations: tuple[float, float] = (2.0, 30.0)  # of a known peak, at which they begin
    news: float = 1.0  # nats by which the largest Laplace mass must rise to count
    most_peaks: int = 64  # that are kept: what particles can begin at
    most_peaks_many: int = 4  # beyond `many` dimensions, where a peak is a matrix of many entries
    same_peak: float = 0.5  # deviations within which two points are one peak
    unusual: float = 0.5  # spreads by which a coordinate of a peak differs from all kept [many_well_32]
    mass_window: float = 20.0  # nats, and one more a coordinate, below the best at which a peak is dropped
    newton_steps: int = 40  # at most: they follow bent ridges
    newton_steps_many: int = 5  # beyond `many` dimensions
    newton_lengths: tuple[float, ...] = (1.0, 4.0**-1, 4.0**-2, 4.0**-3, 4.0**-4)  # shares tried at once
    newton_gain: float = 0.01  # nats that a step must promise to be taken
    looks: int = 2**20  # places a round that are held against known peaks
    look_entries: int = 2**24  # their coordinates at most: memory
    look_work: float = 4e9  # operations that they may take: seconds
    alone: float = 0.25  # share of these looks where one peak is known, and may be all there is
    unexplained: float = 5.0  # nats by which a place lies above all normal laws: less is a peak's bend
    padding: float = 0.25  # share by which the box of places is wider than what the peaks span
    apart: tuple[float, float] = (0.1, 3.0)  # distances of other places, in spreads of the peaks
    wide: tuple[float, float] = (2.0, 30.0)  # distances of the rest, in deviations of a peak
    most_places: int = 256  # walks that all these looks are for; fewer walks get fewer looks
    tile: int = 4096  # places at which the density is asked in one go
    block: int = 2**16  # places that are in memory at once
    hessians: int = 16  # places whose curvature is asked in one go


@dataclass(frozen=True, kw_only=True)
class PathLaplace(Record):
    """Stage `path`: normal laws at places along walks, judged by their evidence bound (as in Pathfinder)."""

    shrinkage: tuple[float, ...] = (1.0, 0.5, 0.25)  # of deviations: curvature may promise too wide a law
    num_draws: int = 32  # for a bound
    most_kept: int = 16  # places
    most_passes: int = 16384  # for curvatures: each takes as many as there are coordinates
    margin: float = 2.0  # nats by which a place must beat every peak: less may be noise of the bound
    window: float = 20.0  # nats below the best bound at which a place is dropped
    enough: float = 0.7  # efficiency of one peak's normal law at which no particles are needed


@dataclass(frozen=True, kw_only=True)
class Adapt(Record):
    """Stage `adapt`: proposals fitted to their own weighted draws."""

    most_dim: int = 16  # coordinates: weights of more are too unequal
    num_draws: int = 4096  # of a round
    rounds: int = 10
    freedom: float = 5.0  # of the t laws that propose: tails must be heavier than the target's
    sizes: tuple[int, ...] = (1, 4, 8, 16, 32)  # components of a round's proposal, besides the peaks' number
    rows: int = 4096  # resampled, that a proposal is fitted to
    least: float = 64.0  # effective draws below which weights are made more equal before the fit
    fresh: float = 0.2  # efficiency of a round's own draws,
    effective: float = 8192.0  # and effective draws of all rounds, that end it
    enough: float = 1500.0  # effective draws that serve if rounds run out
    num_kept: int = 16384  # draws handed on
    good: float = 0.1  # efficiency of their law at which training may begin from it
    judged: int = 32768  # fresh draws by which the law is judged, and its weights mended


@dataclass(frozen=True, kw_only=True)
class Residual(Record):
    """Stage `residual`: draws of the law that weigh far too much, and where they lead."""

    rounds: int = 3
    excess: float = 3.0  # nats above the usual weight that the law does not explain
    walks: int = 256  # that begin at the largest weights
    wider: tuple[float, float] = (1.0, 6.0)  # factors by which half of the draws are spread
    first_step: float = 0.01  # of a walk, in deviations of the law: a hidden mode is narrow
    least_mass: float = 1e-3  # share of the mass that a mode must hold
    still: float = 0.1  # nats that a step of Newton's may still promise at a peak
    sure: float = 0.95  # probability of the resolution that is told
    trials: int = 400  # places of a mode, by which it is computed
