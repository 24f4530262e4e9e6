"""Matplotlib without its global state: the same records give the same bytes."""

import io

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

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


def subplots(rows: int, columns: int, size: tuple[float, float]) -> tuple[Canvas, list[list[Axes]]]:
    """Return a figure and its axes, row by row."""
    figure = Canvas(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).tolist()


def save(figure: Canvas, kind: str, dpi: int = 110) -> bytes:
    """Return the figure as a file, without a date or a random name in it."""
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "pushforward"}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()
