"""The numbers of what surrounds the training: the rest of the recipe's table."""

from dataclasses import dataclass

from pushforward.frozen import Record


@dataclass(frozen=True, kw_only=True)
class Open(Record):
    """What fills `batch_size`, by the dimension and the cost of the target."""

    batch_sizes: tuple[tuple[int, int], ...] = ((32, 1024), (100, 512), (10**9, 256))
    """Up to so many dimensions, so many draws a step."""
    batch_work: float = 1.5e8  # operations that looking once at a batch may take
    least_batch: int = 128  # of a dear target


@dataclass(frozen=True, kw_only=True)
class Reweight(Record):
    """Stage `reweight`: component weights and marginals by importance weights of the sampler's own draws."""

    num_draws: int = 65536  # that are weighed
    num_draws_many: int = 8192  # beyond `many` dimensions, where each costs more than it tells
    entries: int = 2**24  # draws times weights at most: memory
    parts: int = 8  # of the draws, whose median efficiency counts: one wild draw must not decide
    trust_from: float = 0.2  # efficiency below which a few draws carry all weight
    cap: float = 5.0  # nats above the median at which a log weight is cut
    steps: int = 10  # of expectation-maximisation
    edge: float = 4.0  # of the bins of a marginal, on either side; two more bins lie beyond
    num_bins: int = 64
    pseudo_count: float = 0.5  # draws of weight one that each bin holds besides its own
    scales: tuple[float, ...] = (0.6, 0.8, 1.0, 1.25, 1.6, 2.0)  # normals at zero that make a marginal
    places: tuple[float, ...] = (0.75, 1.5, 2.25, 3.0)  # and of those on either side
    place_scale: float = 0.75
    marginal_steps: int = 5000  # that fit a marginal
    slack: float = 0.01  # by which two efficiencies of the same sampler may differ


@dataclass(frozen=True, kw_only=True)
class Judge(Record):
    """When a sampler is good enough, hopeless, or not to be believed."""

    learnt: float = 0.985  # efficiency from which on nothing is left to learn
    simple: float = 0.1  # efficiency of one normal law at which training begins there
    settled: int = 10  # looks without gain after which training ends,
    gain: float = 0.003  # of efficiency
    mixture_draws: int = 8192  # by which a mixture is weighed
    ksd_draws: int = 500  # of a look during training
    weighed_draws: int = 4096  # of a look
    in_vain: float = 0.01  # efficiency of a map that has learnt next to nothing: twenty draws of a look
    patience: float = 1 / 3  # share of the steps after which it is given up, if it lies low as well
    far: float = 0.5  # nats a coordinate by which it lies so low that `impatience` is enough [lj13]
    impatience: float = 0.1
    low: float = 0.5  # nats by which draws must lie lower than particles to be given up
    low_each: float = 0.05  # and a coordinate
    low_draws: int = 4096  # by whose medians that is told
    least: float = 0.3  # efficiency below which a sampler is `INACCURATE`: at most this,
    least_nats: float = 0.05  # exp(-least_nats dim) in many dimensions,
    never: float = 1e-3  # and at least that
    log_z_apart: float = 0.5  # nats of log Z between particles and sampler: four tenths of the mass


@dataclass(frozen=True, kw_only=True)
class Fallback(Record):
    """Stage `fallback`: particles after replica exchange, each a Langevin step wide [dw4, lj13]."""

    most: int = 16384  # particles
    most_dim: int = 128  # up to which they can show a law
    drop: float = 0.01  # nats a coordinate by which a step may lower the mean log density
    step_range: tuple[float, float] = (0.5, 0.005)  # longest and shortest step tried, in the frame
    num_steps: int = 14  # between them
    worst: float = 20.0  # nats by which one point may count as lower
    ladders: int = 64  # at most: to forget its start takes a walk steps, not walkers
    draws_each: int = 128  # for each ladder
    hottest: float = 0.1  # inverse temperature
    levels: int = 8  # temperatures
    num_leapfrog: int = 8  # of a move
    crowd: int = 32  # particles a ladder while they are heated, and chains a ladder at the end
    heating: int = 12  # moves at a temperature
    first_step: float = 0.05  # leapfrog step
    num_warmup: int = 128  # steps that tune it
    piece: int = 8  # positions that a piece keeps of a ladder
    thin: int = 8  # steps between two of them
    least_pieces: int = 8  # below, a walk has not forgotten its start
    usual_pieces: int = 40  # where no clock says
    most_pieces: int = 320  # where one does
    spread: int = 8  # positions kept of each single chain at the end
    stride: int = 24  # steps between two


@dataclass(frozen=True, kw_only=True)
class Clock(Record):
    """How a budget is spent, and how often a fit looks up."""

    search_until: float = 0.3  # shares of the budget after which no round of the search begins,
    rounds_until: float = 0.6  # no round of particles,
    maps_until: float = 0.8  # no first map, which is training too,
    train_until: float = 0.92  # no training step,
    walk_until: float = 0.96  # no walk of particles
    late: float = 0.05  # share of the budget after its end in which what is under way may end;
    again: float = 0.25  # seconds after which that is asked again while there is nothing to hand back
    looks_a_round: int = 300  # at the target, that a particle takes in a round
    rounds: int = 3  # that there should be time for
    least_steps: int = 50  # of training
    trials: int = 3  # of a step that is timed
    longer: float = 4.0  # times the usual steps that a fit may take where there is time
    rows: int = 40  # of history: often enough to see a run move, seldom enough to cost nothing
    bad_chunks: int = 3  # in a row with most steps skipped before a run is called diverged,
    bad_steps: int = 10  # if they hold so many
    look_every: float = 2.0  # seconds between two looks at the clock: schedulers wait for ten or thirty
    most_tiles: int = 2**10  # pieces that a batch may be cut into where memory is short
