"""The law along necks: its map is written down from what draws say of them, not trained.

A neck is a coordinate by which the widths of others go, as in funnels. Particles creep along it: what they
may change in one move shrinks with the number of widths that must follow. The log of each deviation is
regressed on the neck, which holds beyond where draws have been, too.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from pushforward.base import Target
from pushforward.frame import Frame
from pushforward.host import into, on_device
from pushforward.latents import standard
from pushforward.networks import Coupled
from pushforward.networks.coupled import num_layers, unbounded
from pushforward.networks.mlp import MLP
from pushforward.recipe.approximation import Approximation
from pushforward.recipe.judge import weighed
from pushforward.recipe.law import frame_from_draws
from pushforward.recipe.table import Necks, Recipe


class Widths(NamedTuple):
    """Widths `exp(offsets + slopes . u)` around `centres + shifts . u`, with slopes for the `necks` only."""

    necks: tuple[int, ...]
    centres: Float[np.ndarray, " dim"]
    offsets: Float[np.ndarray, " dim"]
    slopes: Float[np.ndarray, "dim dim"]
    shifts: Float[np.ndarray, "dim dim"]


def find_necks(u: Float[np.ndarray, "m dim"], numbers: Necks, correlated: int) -> Widths | None:
    """Return the necks of draws with a normal's quantiles, strongest first; none may follow another."""
    num_draws, dim = u.shape
    x = np.clip(u, -numbers.outlier, numbers.outlier)
    found = Widths((), np.zeros(dim), np.zeros(dim), np.zeros((dim, dim)), np.zeros((dim, dim)))
    # Draws of one population after another are worth a fraction of as many independent ones.
    chance = numbers.sure * numbers.log_spread / np.sqrt(num_draws / correlated)
    for _ in range(numbers.most):
        slopes = _regress(_logs(u, x, found), x)
        free = ~np.any(found.slopes != 0.0, axis=1)
        free[list(found.necks)] = False
        slopes[list(found.necks)] = 0.0
        np.fill_diagonal(slopes, 0.0)
        strong = np.where(np.abs(slopes) > max(numbers.least_slope, chance), slopes, 0.0)
        gains = np.where(free, np.sum(strong**2, axis=0), 0.0)
        best = int(np.argmax(gains))
        if gains[best] < numbers.least_gain:
            break
        followed = strong[:, best] != 0.0
        found = found._replace(necks=(*found.necks, best))
        for _ in range(numbers.passes):
            found = _improved(u, x, found, best, followed, numbers)
    return found if found.necks and all(np.isfinite(each).all() for each in found[1:]) else None


def _logs(u: np.ndarray, x: np.ndarray, found: Widths) -> np.ndarray:
    """Return the log of every deviation, over its width: what a width lacks shows in it."""
    away = np.abs(u - found.centres - x @ found.shifts.T)
    return np.log(away + 1e-30) - (found.offsets + x @ found.slopes.T)


def _regress(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the slopes of every column of `y` on each column of `x` alone."""
    x = x - x.mean(0)
    return (y - y.mean(0)).T @ x / np.maximum(np.sum(x * x, axis=0), 1e-30)


def _improved(
    u: np.ndarray, x: np.ndarray, found: Widths, neck: int, followed: np.ndarray, numbers: Necks
) -> Widths:
    """Return widths and centres of those that follow one neck, each estimated with the other as it is.

    Centres by weighted least squares: where a neck is narrow it tells more of them.
    """
    centres, offsets, slopes, shifts = (each.copy() for each in found[1:])
    logs = _logs(u, x, found)[:, followed]
    more = _regress(logs, x[:, [neck]])[:, 0]
    slopes[followed, neck] += more
    offsets[followed] += logs.mean(0) - numbers.log_normal - more * x[:, neck].mean()
    weights = np.exp(-2.0 * (offsets[followed] + x @ slopes[followed].T))
    weights /= weights.sum(0)
    residual = (u - centres - x @ shifts.T)[:, followed]
    middle, means = x[:, neck] @ weights, np.sum(weights * residual, axis=0)
    apart = x[:, [neck]] - middle
    tilt = np.sum(weights * apart * residual, axis=0) / np.sum(weights * apart**2, axis=0)
    shifts[followed, neck] += tilt
    centres[followed] += means - tilt * middle
    return Widths(found.necks, centres, offsets, slopes, shifts)


def along_necks(
    rng: np.random.Generator, target: Target, x: Float[np.ndarray, "m dim"], recipe: Recipe, bound: float
) -> Approximation | None:
    """Return the best law along the necks of draws `x`, if its evidence bound is not far below another's.

    What is good is near to the target, not likely by the draws: those of an early round may share few
    ancestors, and a mixture of many normals knows their families by heart.
    """
    best, least = None, bound - recipe.necks.worse
    for law in neck_maps(x, recipe):
        value = float(np.mean(weighed(rng, target, law, recipe)))
        if value > least:
            best, least = law, value
    return best


def neck_maps(x: Float[np.ndarray, "m dim"], recipe: Recipe) -> list[Approximation]:
    """Return the laws along the necks of draws: in the coordinates themselves, and in white ones."""
    laws = [neck_map(x, recipe, white=white) for white in (False, True)]
    return [law for law in laws if law is not None]


def neck_map(x: Float[np.ndarray, "m dim"], recipe: Recipe, *, white: bool) -> Approximation | None:
    """Return the frame and the map that follow the necks of draws, if there are any, with normal latents.

    A `white` frame takes linear dependence away first. Where all of it is chance, that smears a neck, since
    correlations of what is wide at one end only are mostly noise.
    """
    correlated = recipe.annealing.num_snapshots
    frame = frame_from_draws(x, bend=False, law=recipe.law, correlated=correlated)
    matrix = np.asarray(frame.matrix, np.float64) if white else np.eye(frame.dim)
    u = into(Frame(*(frame.centre, frame.scale, frame.bend, frame.shift, on_device(matrix))), x)
    # By quantiles once more: covariances are those of the few widest draws.
    low, middle, high = np.quantile(u, [0.1587, 0.5, 0.8413], axis=0)
    half = np.maximum(0.5 * (high - low), 1e-30)
    found = find_necks((u - middle) / half, recipe.necks, correlated)
    if found is None:
        return None
    # The map's coordinates: middle + half * (centres + exp(units) * u'), in which it need not stretch much.
    follows = np.any(found.slopes != 0.0, axis=1)
    units = np.where(follows, found.offsets - recipe.necks.middle, 0.0)
    shift = np.asarray(frame.shift, np.float64) + matrix @ (middle + half * found.centres)
    moved = on_device(shift), on_device(matrix * half * np.exp(units))
    shifts = np.exp(-units)[:, None] * found.shifts
    known = found._replace(offsets=found.offsets - units, shifts=shifts)
    network = Coupled(tuple(_net(layer, known, recipe.necks) for layer in range(num_layers(frame.dim))))
    scaled = Frame(frame.centre, frame.scale, frame.bend, *moved)
    return Approximation(scaled, standard(frame.dim), network, found.necks)


def _net(layer: int, found: Widths, numbers: Necks) -> MLP:
    """Return a layer of the map that multiplies by those widths and adds those shifts.

    Each coordinate follows a neck in the first layer that keeps this and moves that.
    """
    dim, units = len(found.offsets), numbers.knots * len(found.necks)
    first, first_bias = np.zeros((units, dim)), np.zeros(units)
    last, last_bias = np.zeros((2 * dim, units)), np.zeros(2 * dim)
    for number, neck in enumerate(found.necks):
        slopes = found.slopes[:, neck]
        half = numbers.each_way / np.abs(slopes).max()
        knots, grid = np.linspace(-half, half, numbers.knots), np.linspace(-half, half, 256)
        sharp = numbers.sharpness * numbers.knots / (2.0 * half)
        mine = slice(number * numbers.knots, (number + 1) * numbers.knots)
        first[mine, neck], first_bias[mine] = sharp, -sharp * knots
        moved = [int(j) for j in np.flatnonzero(slopes) if _layer_of(int(j), neck) == layer]
        if not moved:
            continue
        # The offset belongs to the neck that a coordinate follows most.
        main = np.abs(found.slopes[moved]).argmax(1) == neck
        logs = slopes[moved] * grid[:, None] + np.where(main, found.offsets[moved], 0.0)
        wanted = np.column_stack([unbounded(logs), found.shifts[moved, neck] * grid[:, None]])
        h = sharp * (grid[:, None] - knots)
        features = np.column_stack([h / (1.0 + np.exp(-h)), np.ones(len(grid))])
        # Best where most draws are; the floor is for where none have been yet.
        matters = np.sqrt(np.exp(-0.5 * grid**2) + numbers.floor)[:, None]
        weights = np.linalg.lstsq(matters * features, matters * wanted, rcond=1e-9)[0]
        rows = [*moved, *(dim + j for j in moved)]
        last[rows, mine] = weights[:-1].T
        last_bias[rows] += weights[-1]
    # A second hidden layer passes on: `silu(h) - silu(-h) = h`.
    both = np.concatenate([np.eye(units), -np.eye(units)])
    weights = first, both, np.concatenate([last, -last], axis=1)
    biases = first_bias, np.zeros(2 * units), last_bias
    single = (tuple(jnp.asarray(a, float) for a in arrays) for arrays in (weights, biases))
    return MLP(*single, activation="silu", skip=False)


def _layer_of(j: int, neck: int) -> int:
    """Return the first layer that keeps `neck` and moves `j`."""
    bit = (j ^ neck) & -(j ^ neck)
    return 2 * (bit.bit_length() - 1) + int(bool(neck & bit))


def filled_up(fresh: Coupled, narrow: Coupled) -> Coupled | None:
    """Return a map like `narrow` with the layers of `fresh`, whose other units have no effect yet.

    `None` where it does not fit.
    """
    nets = []
    for wide, net in zip(fresh.nets, narrow.nets, strict=True):
        pairs = list(zip(net.weights, wide.weights, strict=False))
        alike = len(net.weights) == len(wide.weights) and net.activation == wide.activation
        if not alike or any(n > m for a, b in pairs for n, m in zip(a.shape, b.shape, strict=True)):
            return None
        biases = [b.at[: len(a)].set(a) for a, b in zip(net.biases, wide.biases, strict=True)]
        # The old units see nothing of the new ones.
        weights = [b.at[: len(a)].set(0.0).at[: len(a), : a.shape[1]].set(a) for a, b in pairs]
        nets.append(MLP(tuple(weights), tuple(biases), net.activation, net.skip))
    return Coupled(tuple(nets))
