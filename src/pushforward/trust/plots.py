"""Three kinds of plots of draws before and after the short chains, as PNG inside HTML: nothing to fetch."""

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from pushforward.optional import need

BEFORE, AFTER = "#0072b2", "#d55e00"


@dataclass(frozen=True)
class Pictures:
    """Draws before and after the short chains, with their energies: what the plots are made of."""

    before: Float[np.ndarray, "n dim"]
    after: Float[np.ndarray, "n dim"]
    energy_before: Float[np.ndarray, " n"]
    energy_after: Float[np.ndarray, " n"]


def figure(pictures: Pictures) -> str:
    """Return the plots as a part of a page."""
    data = base64.b64encode(plot(pictures)).decode("ascii")
    words = "Marginals, energies and pairs of the draws (blue), and after the short chains (red)."
    return (
        f"<figure><div tabindex='0'><img class='wide' alt='{words}' src='data:image/png;base64,{data}'></div>"
        f"<figcaption>{words} Where the two differ, the draws were wrong.</figcaption></figure>"
    )


def plotting() -> Any:
    """Return Matplotlib, or say how to get it."""
    return need("A page with plots stands on", "matplotlib", "plots", "figure", "backends.backend_agg")


def plot(pictures: Pictures, most: int = 6) -> bytes:
    """Return a picture of marginals (of so many coordinates at `most`), energies and a pair, as PNG."""
    matplotlib = plotting()
    before, after = pictures.before, pictures.after
    dim = before.shape[1]
    panels = min(dim, most)
    count = panels + 1 + (dim > 1)
    size = (2.6 * min(count, 4), 2.4 * -(-count // 4))
    figure = matplotlib.figure.Figure(figsize=size, layout="constrained")
    axes = iter(np.ravel(figure.subplots(-(-count // 4), min(count, 4), squeeze=False)))
    for i in range(panels):
        _histogram(next(axes), before[:, i], after[:, i], f"x[{i}]")
    _histogram(next(axes), pictures.energy_before, pictures.energy_after, "energy")
    if dim > 1:
        axis = next(axes)
        for points, colour in ((before, BEFORE), (after, AFTER)):
            axis.plot(*points[:, :2].T, ".", ms=1.5, alpha=0.4, color=colour)
        low, high = np.quantile(np.vstack([before, after])[:, :2], [0.002, 0.998], axis=0)
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), title="x[0], x[1]")
    for axis in axes:
        axis.set_visible(False)
    buffer = io.BytesIO()
    matplotlib.backends.backend_agg.FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


def _histogram(axis, before: np.ndarray, after: np.ndarray, title: str) -> None:
    low, high = np.quantile(np.concatenate([before, after]), [0.002, 0.998])
    edges = np.linspace(low, max(high, low + 1e-12), 41)
    for values, colour in ((before, BEFORE), (after, AFTER)):
        axis.hist(np.clip(values, low, high), edges, density=True, histtype="step", color=colour)
    axis.set_title(title, fontsize=9)
    axis.set_yticks([])
