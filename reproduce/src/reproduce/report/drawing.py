"""Matplotlib without its global state: the same records give the same bytes."""

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from reproduce.report.section import Figure

COLOURS = {
    "exact": "#4d4d4d",
    "default": "#0072b2",
    "kl": "#d55e00",
    "fisher": "#009e73",
    "default-thin": "#56b4e9",
    "default-sobol": "#56b4e9",
    "svgd": "#cc79a7",
    "ld": "#e69f00",
    "hmc": "#b59f00",
    "flow": "#7a5195",
}
"""Colours that are told apart by most eyes."""


def subplots(
    rows: int, columns: int, size: tuple[float, float], *, boxed: bool = False
) -> tuple[Canvas, list[list[Axes]]]:
    """Return a figure and its axes, row by row; open above and on the right unless `boxed`."""
    figure = Canvas(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in () if boxed else axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes.tolist()


def legend(axis: Axes, **options: Any) -> None:
    """Name the lines, small and without a frame."""
    axis.legend(**{"fontsize": 8, "frameon": False, **options})


def drawn(figure: Canvas, name: str, title: str, words: str = "", dpi: int = 110) -> Figure:
    """Return the figure as a file of the kind that its name says, without a date or a random name in it."""
    buffer, kind = io.BytesIO(), name.rsplit(".", 1)[1]
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "pushforward"}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return Figure(name, buffer.getvalue(), title, words)
