"""The figures of the study in the plane: metrics while a sampler trains, and draws below densities."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from reproduce.report.cells import Cells
from reproduce.report.drawing import COLOURS, drawn, legend, subplots
from reproduce.report.section import Figure

METHODS = ("default", "kl", "fisher")
PER_ROW = 3


def curve_figures(arrays: dict[str, np.ndarray], cells: Cells) -> list[Figure]:
    """Return one figure for each of the two metrics."""
    targets = list(dict.fromkeys(name.split("/")[2] for name in arrays if name.startswith("curve/")))
    targets = [target for target in targets if target != "published_funnel"]
    if not targets:
        return []
    return [
        _figure(arrays, cells, targets, "ksd_imq_v", 1, "two_d_ksd_time.svg", "KSD while training"),
        _figure(arrays, cells, targets, "sliced_w2", 3, "two_d_w2_time.svg", "Sliced W2 while training"),
    ]


def _figure(
    arrays: dict[str, np.ndarray],
    cells: Cells,
    targets: list[str],
    metric: str,
    column: int,
    name: str,
    title: str,
) -> Figure:
    rows = math.ceil(len(targets) / PER_ROW)
    across = min(PER_ROW, len(targets))
    figure, axes = subplots(rows, across, (3.2 * across, 2.5 * rows))
    flat = [axis for row in axes for axis in row]
    for axis, target in zip(flat, targets, strict=False):
        for method in METHODS:
            curve = arrays.get(f"curve/{method}/{target}")
            if curve is not None:
                axis.plot(curve[:, 0], curve[:, column], color=COLOURS[method], lw=1.4, label=method)
        cell = next((c for m in METHODS if (c := cells.get(metric, m, target))), None)
        if cell is not None and cell.floor:
            axis.axhline(cell.floor, color="#4d4d4d", lw=1.0, ls="--", label="floor")
        axis.set_title(target, fontsize=10)
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set_xlim(left=0)
        axis.tick_params(labelsize=8)
    for axis in flat[len(targets) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel(metric, fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("seconds of training", fontsize=9)
    legend(flat[0])
    return drawn(figure, name, title)


SHOWN = ("default", "kl", "fisher", "flow", "ld", "svgd", "default-thin")


def draws_figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return densities and draws: a column per target, a row per method."""
    targets = [name.removeprefix("density/") for name in arrays if name.startswith("density/")]
    targets = [target for target in targets if target != "published_funnel"]
    methods = [m for m in SHOWN if any(f"draws/{m}/{target}" in arrays for target in targets)]
    if not targets:
        return None
    figure, axes = subplots(
        1 + len(methods), len(targets), (1.9 * len(targets), 1.9 * (1 + len(methods))), boxed=True
    )
    for column, target in enumerate(targets):
        window = arrays[f"window/{target}"]
        left, right, bottom, top_edge = map(float, window)
        top = axes[0][column]
        top.imshow(
            arrays[f"density/{target}"],
            origin="lower",
            extent=(left, right, bottom, top_edge),
            aspect="auto",
            cmap="Blues",
        )
        top.set_title(target, fontsize=11)
        _bare(top, window)
        for row, method in enumerate(methods, start=1):
            axis = axes[row][column]
            draws = arrays.get(f"draws/{method}/{target}")
            if draws is not None:
                few = len(draws) <= 500
                axis.scatter(
                    draws[:, 0], draws[:, 1], s=2.2 if few else 1.0, lw=0, alpha=0.9 if few else 0.6,
                    color=COLOURS.get(method, "#444444"), rasterized=True,
                )  # fmt: skip
            _bare(axis, window)
    for row, words in enumerate(("density", *methods)):
        axes[row][0].set_ylabel(words, fontsize=11)
    return drawn(figure, "two_d_draws.png", "Targets and draws")


def _bare(axis: Axes, window: np.ndarray) -> None:
    axis.set_xlim(float(window[0]), float(window[1]))
    axis.set_ylim(float(window[2]), float(window[3]))
    axis.set_xticks([])
    axis.set_yticks([])
