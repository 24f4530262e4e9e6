"""The demo's picture: the density, a million draws, and the training between them, if there was one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

LINE, FLOOR = "#33558b", "#c2502e"
TOLD = {
    "ksd_imq_v": ("KSD of 500 draws", "kernel Stein discrepancy"),
    "efficiency": ("effective share of draws", "efficiency"),
}
"""What the rows of a training may tell: title and axis."""
BINS = 160
SHARES = (0.5, 0.9, 0.99)  # the contours enclose these shares of the mass

Interval = tuple[float, float]
Rows = Sequence[Mapping[str, int | float]]


def demo_figure(
    path: str | Path,
    *,
    log_density: np.ndarray,
    window: tuple[Interval, ...],
    draws: np.ndarray,
    history: Rows,
    floor: float,
    floor_spread: float,
) -> None:
    """Write the picture; where the rows tell nothing, or there are none, without the training."""
    x, y = (np.linspace(*side, n) for side, n in zip(window, log_density.T.shape, strict=True))
    cell = (x[1] - x[0]) * (y[1] - y[0])
    density = np.exp(log_density - log_density.max())
    density /= density.sum() * cell

    # Made without pyplot, whose global state and choice of windows a library should not touch.
    name = next((each for each in TOLD if history and each in history[-1]), None)
    figure = Figure(figsize=(13.6 if name else 9.3, 4.5), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    truth, drawn, *rest = figure.subplots(1, 3 if name else 2)
    norm = PowerNorm(0.5, 0.0, float(density.max()))
    _map(truth, density, window, norm)
    truth.set_title("The target: Rosenbrock", pad=10)
    edges = [np.linspace(*side, BINS + 1) for side in window]
    counts = np.histogram2d(draws[:, 1], draws[:, 0], bins=edges[::-1])[0]
    bin_area = np.prod([side[1] - side[0] for side in edges])
    image = _map(drawn, counts / len(draws) / bin_area, window, norm)
    drawn.set_title(f"The sampler: {len(draws):,} draws", pad=10)
    for axes in (truth, drawn):
        axes.contour(x, y, density, levels=_levels(density, cell), colors="white", linewidths=0.7, alpha=0.75)
        axes.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    lines = "lines: 50, 90, 99 % of the target"
    drawn.text(0.03, 0.95, lines, transform=drawn.transAxes, color="white", fontsize=9)
    figure.colorbar(image, ax=drawn, fraction=0.046, pad=0.03).set_label("density")
    if name:
        # Exact draws have weights that are all alike.
        exact = (floor, floor_spread) if name == "ksd_imq_v" else (1.0, 0.0)
        _curve(rest[0], name, history, *exact)
    figure.savefig(path, dpi=160)


def _map(axes: Axes, values: np.ndarray, window: tuple[Interval, ...], norm: PowerNorm) -> AxesImage:
    # The square-root scale shows the thin tails that a linear one would lose.
    (left, right), (bottom, top) = window
    return axes.imshow(values, origin="lower", extent=(left, right, bottom, top), cmap="magma", norm=norm)


def _levels(density: np.ndarray, cell: float) -> list[float]:
    """Return the heights above which `SHARES` of the mass lie, rising."""
    heights = np.sort(density, axis=None)[::-1]
    mass = np.cumsum(heights) * cell
    return sorted(float(heights[np.searchsorted(mass, share)]) for share in SHARES)


def _curve(axes: Axes, name: str, history: Rows, exact: float, spread: float) -> None:
    steps, values = ([row[key] for row in history] for key in ("step", name))
    if spread > 0.0:
        band = (exact - 2 * spread, exact + 2 * spread)
        axes.axhspan(*band, color=FLOOR, alpha=0.12, linewidth=0, label="exact draws: ± 2 sd")
    axes.axhline(exact, color=FLOOR, linewidth=1.4, linestyle="--", label="exact draws: mean")
    axes.plot(steps, values, color=LINE, linewidth=2, marker="o", markersize=3, label="the sampler")
    if max(values) > 10 * exact:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0.0)
    title, label = TOLD[name]
    axes.set_title(f"The training: {title}", pad=10)
    axes.set(xlabel="step", ylabel=label, xlim=(0, 1.02 * max(steps)))
    axes.grid(alpha=0.2)
    axes.legend(frameon=False, loc="best")
    axes.set_box_aspect(1)
    axes.spines[["top", "right"]].set_visible(False)
