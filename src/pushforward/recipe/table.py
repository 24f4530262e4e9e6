"""Every number of the method: a record for each stage, all of them in one `Recipe`.

A number stands here with its unit and its reason, and nowhere else; those of the training and of what follows
it are in `settings.py` and `closing.py`. `[name]` names the target of the study `hard` whose rows set it.
"""

from dataclasses import dataclass, field
from typing import Any

from pushforward.mcmc.annealed import Plan
from pushforward.mcmc.moves import Moves
from pushforward.recipe.closing import Clock, Fallback, Judge, Open, Reweight
from pushforward.recipe.records import Record
from pushforward.recipe.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Dimensions(Record):
    """Numbers of coordinates at which the method changes."""

    necks: int = 20  # from here on particles creep along a neck, so that necks are looked for [funnel_100]
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
    good: float = 0.2  # efficiency of their law at which training may begin from it
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


@dataclass(frozen=True, kw_only=True)
class Annealing(Record):
    """Stage `anneal`, and the particles of `necks` and `maps`: tempered sequential Monte Carlo in rounds."""

    num_particles: int | None = None  # open: by dimension and cost of the target
    particles: tuple[tuple[int, int], ...] = ((3, 32768), (16, 16384), (100, 8192), (10**9, 4096))
    """Up to so many dimensions, so many particles: the cost of a round stays level."""
    work: float = 6e8  # operations that looking once at all particles may take
    least_particles: int = 1024  # of a dear target
    least_on_memory: int = 512  # particles below which memory that runs out is an error
    ess_share: float = 0.6  # effective share that the next temperature keeps
    most_temperatures: int = 200  # of a round
    num_sweeps: int = 6  # of moves at a temperature
    num_snapshots: int = 4  # populations at the target that are kept, one after the other
    acceptance: float = 0.57  # of Langevin moves: optimal in many dimensions
    step_spread: float = 4.0  # width of the logs of step sizes: narrow places are entered too
    step_spread_more: float = 1.5  # beyond `spread_until` dimensions
    spread_until: int = 10
    whole_differences: tuple[float, float] = (0.3, 0.6)  # shares of ensemble moves from mode to mode
    difference_length: float = 2.38  # of the others: the optimum for a normal law
    difference_logs: tuple[float, float] = (-4.0, 0.5)  # range of the log of their factor
    longest_drift: float = 3.0  # times the root of the dimension: a steep slope must not leap away
    step_gain: float = 1.5  # of log step sizes, by acceptance: halve or double at first, then settle
    widen: float = 1.25  # factor of a start's deviations, or 1 + dim^-1/2: its cost is a power of dim
    wide_share: float = 0.05  # of a start's broad component
    wide_scale: float = 3.0  # its deviation, in the frame
    first_width: float = 2.0  # the same factor where peaks are all that is known, or 1 + 2 dim^-1/2
    first_broad: float = 5.0
    first_broad_share: float = 0.2
    least_mass: float = 4.0  # nats below the largest peak at least: a narrow guess must cost no mode
    most_rounds: int = 4
    rounds_before_maps: int = 2  # before maps take over where they can
    good_start: float = 0.4  # efficiency of a start that ends the rounds where no maps follow
    good_at_once: float = 0.7  # the same after the first round
    improves: tuple[float, float] = (0.1, 2.0)  # efficiency, and gain of it, after which a round repeats
    components: int = 32  # normals of the mixture at most
    components_many: int = 64  # beyond `many_peaks`
    many_peaks: int = 24

    def plan(self, dim: int) -> Plan:
        """Return how particles of so many coordinates are annealed."""
        spread = self.step_spread if dim <= self.spread_until else self.step_spread_more
        moves = Moves(
            self.num_sweeps, self.acceptance, spread,
            self.whole_differences, self.difference_length, self.difference_logs,
            self.longest_drift, self.step_gain,
        )  # fmt: skip
        num_particles = self.num_particles or next(count for most, count in self.particles if dim <= most)
        return Plan(num_particles, self.num_snapshots, self.ess_share, self.most_temperatures, moves)


@dataclass(frozen=True, kw_only=True)
class Law(Record):
    """Frame and mixture of normals that stand for draws."""

    bend_from: float = 0.3  # bends of a coordinate below this are left to the network
    chance: float = 3.0  # standard errors within which a correlation counts as chance
    chance_bounds: tuple[float, float] = (0.8, 1.25)  # eigenvalues without chance, or all are kept
    rows: int = 24576  # draws that a mixture is fitted to at most
    sizes: tuple[int, ...] = (4, 16)  # numbers of normals tried, besides the most there may be
    steps: int = 24  # of expectation-maximisation
    settled: float = 1e-4  # nats a draw by which a step must gain
    line_steps: int = 40  # the same for mixtures on the line, where a step is cheap
    few_components: int = 8  # of a mixture on the line
    weight_steps: int = 3  # of the same for weights alone, on all draws
    alike: tuple[float, float] = (300.0, 3.0)  # rows a coordinate that draw shapes together: much, little
    rows_each: int = 12  # rows a coordinate that a normal's shape asks for
    entries: int = 2**16  # rows times coordinates that mixtures of single coordinates are fitted to
    tolerance: float = 0.001  # nats a draw by which a smaller mixture may be worse: training mends more
    ridge: float = 1e-5  # added to covariances, in variances of the data: no normal falls onto a point


@dataclass(frozen=True, kw_only=True)
class Necks(Record):
    """Stage `necks`: particles along coordinates by which the widths of others go [funnel_100]."""

    most: int = 4  # necks
    least_slope: float = 0.1  # of a log width in a deviation of the neck that it follows
    sure: float = 5.0  # standard errors of that slope
    least_gain: float = 1.0  # nats, the sum of squared slopes: weaker necks training sees to
    passes: int = 3  # in which widths and centres are estimated in turn
    outlier: float = 4.0  # deviations at which a neck's outliers count
    log_normal: float = -0.6352  # mean of log |z| of a standard normal
    log_spread: float = 1.1107  # its deviation
    knots: int = 8  # units of the map that follow one neck
    sharpness: float = 3.0  # of their bends
    middle: float = -2.6  # log stretch in the middle of a neck: a layer can shrink more than stretch
    each_way: float = 5.0  # how much more or less of it there can be
    floor: float = 0.02  # weight of places where no draws have been, next to the middle
    worse: float = 1.0  # nats below the mixture's bound that a map of necks may be: it reaches ends
    rounds: int = 4
    reach: float = 3.0  # times wider along necks that a round begins than the draws before
    good: float = 0.9  # efficiency that ends the rounds: what is less may lack the end of a neck
    cost: float = 1.5  # of the first round, next to the round before it
    cost_again: float = 1.1  # of each next one


@dataclass(frozen=True, kw_only=True)
class Maps(Record):
    """Stage `maps`: particles seen through a map that is fitted to those before."""

    rounds: int = 4
    rounds_more: int = 2  # beyond `some` dimensions
    good: float = 0.9  # efficiency that makes rounds needless: what has less may lack a neck's end
    good_until: int = 20  # dimensions; from there on `exp(-good_nats dim)` [many_well_32]
    good_nats: float = 0.015
    good_least: float = 0.4
    cost: float = 6.0  # of the first round, next to the round before it: most of it fits maps
    steps_to_choose: int = 300  # of fits that are only judged
    steps_first: int = 1000
    steps_next: int = 500  # of fits that begin at the map before
    batch_size: int = 1024
    learning_rate: float = 1e-3
    clip: float = 5.0  # norm at which a gradient is cut
    depth: int = 2  # hidden layers, where the network to train is no coupled one
    activation: str = "silu"

    def sizes(self, settings: Settings) -> dict[str, Any]:
        """Return the sizes of a map: those of the network to train, so that training may begin at the map."""
        if settings.network != "coupled":
            return {"width": settings.width, "depth": self.depth, "activation": self.activation}
        return {"width": settings.width, "depth": settings.depth, "activation": settings.activation}


@dataclass(frozen=True, kw_only=True)
class Recipe(Record):
    """All numbers and choices of a fit: what a user may change, a file records, a checkpoint compares."""

    dims: Dimensions = field(default_factory=Dimensions)
    search: Search = field(default_factory=Search)
    path: PathLaplace = field(default_factory=PathLaplace)
    adapt: Adapt = field(default_factory=Adapt)
    residual: Residual = field(default_factory=Residual)
    annealing: Annealing = field(default_factory=Annealing)
    law: Law = field(default_factory=Law)
    necks: Necks = field(default_factory=Necks)
    maps: Maps = field(default_factory=Maps)
    training: Settings = field(default_factory=Settings)
    open: Open = field(default_factory=Open)
    reweight: Reweight = field(default_factory=Reweight)
    judge: Judge = field(default_factory=Judge)
    fallback: Fallback = field(default_factory=Fallback)
    clock: Clock = field(default_factory=Clock)

    def path_of(self, name: str) -> str:
        """Return the full path of a name; those of the training need none."""
        return f"training.{name}" if name in self.training.names() else name
