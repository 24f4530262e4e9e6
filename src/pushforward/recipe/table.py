"""Every number of the method: a record for each stage, all of them in one `Recipe`.

A number stands here with its unit and its reason, and nowhere else; those of how mass is found are in
`finding.py`, those of the training in `settings.py`, and of what follows it in `closing.py`. `[name]` names
the target of the study `hard` whose rows set it.
"""

from dataclasses import dataclass, field
from typing import Any

from pushforward.frozen import Record
from pushforward.recipe.closing import Clock, Fallback, Judge, Open, Reweight
from pushforward.recipe.finding import Adapt, Dimensions, PathLaplace, Residual, Search
from pushforward.recipe.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Annealing(Record):
    """Stage `anneal`, and the particles of `maps`: tempered sequential Monte Carlo in rounds."""

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

    def plan(self, dim: int) -> "Annealing":
        """Return how particles of so many coordinates are annealed."""
        spread = self.step_spread if dim <= self.spread_until else self.step_spread_more
        count = self.num_particles or next(count for most, count in self.particles if dim <= most)
        return self.replace(num_particles=count, step_spread=spread)


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
    dip: float = 2.0  # nats by which the density may dip between two normals of one mode
    ridge: float = 1e-5  # added to covariances, in variances of the data: no normal falls onto a point


@dataclass(frozen=True, kw_only=True)
class Necks(Record):
    """Laws along coordinates by which the widths of others go [funnel_100]."""

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
    cost: float = 1.5  # of a round, next to the round before it


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
        own = settings if settings.network == "coupled" else self
        return {"width": settings.width, "depth": own.depth, "activation": own.activation}


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
