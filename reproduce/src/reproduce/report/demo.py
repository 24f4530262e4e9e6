"""The demo's picture: the density, a million draws, and the training between them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

LINE, FLOOR = "#33558b", "#c2502e"
BINS = 160
SHARES = (0.5, 0.9, 0.99)
"""The contours enclose these shares of the mass."""

Interval = tuple[float, float]


def demo_figure(
    path: str | Path,
    *,
    log_density: np.ndarray,
    window: tuple[Interval, ...],
    draws: np.ndarray,
    history: Sequence[Mapping[str, int | float]],
    floor: float,
    floor_spread: float,
) -> None:
    """Write the picture.

    **Arguments:**

    - `path`: the PNG to write.
    - `log_density`: on a grid over `window`, rows from bottom to top, up to a constant.
    - `window`: the (low, high) of both axes.
    - `draws`: shape `(n, 2)`.
    - `history`: rows with `step` and `ksd_imq_v`.
    - `floor`, `floor_spread`: mean and standard deviation of the KSD of exact draws.
    """
    x, y = (np.linspace(*side, n) for side, n in zip(window, log_density.T.shape, strict=True))
    cell = (x[1] - x[0]) * (y[1] - y[0])
    density = np.exp(log_density - log_density.max())
    density /= density.sum() * cell

    # Made without pyplot, whose global state and choice of windows a library should not touch.
    figure = Figure(figsize=(13.6, 4.5), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    truth, drawn, training = figure.subplots(1, 3)
    norm = PowerNorm(0.5, 0.0, float(density.max()))
    _map(truth, density, window, norm)
    truth.set_title("The target: Rosenbrock", pad=10)
    edges = [np.linspace(*side, BINS + 1) for side in window]
    counts = np.histogram2d(draws[:, 1], draws[:, 0], bins=edges[::-1])[0]
    bin_area = np.prod([side[1] - side[0] for side in edges])
    image = _map(drawn, counts / len(draws) / bin_area, window, norm)
    drawn.set_title(f"The sampler: {len(draws):,} draws", pad=10)
    for axes in (truth, drawn):
        levels = _levels(density, cell)
        axes.contour(x, y, density, levels=levels, colors="white", linewidths=0.7, alpha=0.75)
        axes.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    drawn.text(
        *(0.03, 0.95, "lines: 50, 90, 99 % of the target"),
        transform=drawn.transAxes, color="white", fontsize=9,
    )  # fmt: skip
    figure.colorbar(image, ax=drawn, fraction=0.046, pad=0.03).set_label("density")
    _curve(training, history, floor, floor_spread)
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


def _curve(
    axes: Axes, history: Sequence[Mapping[str, int | float]], floor: float, floor_spread: float
) -> None:
    steps, ksd = ([row[name] for row in history] for name in ("step", "ksd_imq_v"))
    low, high = floor - 2 * floor_spread, floor + 2 * floor_spread
    axes.axhspan(low, high, color=FLOOR, alpha=0.12, linewidth=0, label="exact draws: ± 2 sd")
    axes.axhline(floor, color=FLOOR, linewidth=1.4, linestyle="--", label="exact draws: mean")
    axes.plot(steps, ksd, color=LINE, linewidth=2, marker="o", markersize=3, label="the sampler")
    if max(ksd) > 10 * floor:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0.0)
    axes.set_title("The training: KSD of 500 draws", pad=10)
    axes.set(xlabel="step", ylabel="kernel Stein discrepancy", xlim=(0, max(steps)))
    axes.grid(alpha=0.2)
    axes.legend(frameon=False, loc="best")
    axes.set_box_aspect(1)
    axes.spines[["top", "right"]].set_visible(False)
