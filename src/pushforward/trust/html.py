"""A report as part of a page: a table of the lines and three plots, with nothing to fetch."""

import base64
import html
import io
from typing import TYPE_CHECKING

import numpy as np

from pushforward.trust.terminal import MEANINGS, p_words, summary

if TYPE_CHECKING:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from pushforward.trust.report import Pictures, Report

COLUMNS = ("line", "verdict", "statistic", "p", "what was found", "its null", "what to do")
BEFORE, AFTER = "#0072b2", "#d55e00"
MAX_PANELS = 6
SHOWN = 2000


def fragment(report: "Report") -> str:
    """Return the report as HTML that a page can take in."""
    head = "".join(f"<th scope='col'>{title}</th>" for title in COLUMNS)
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(line.title)}</th>"
        + "".join(
            f"<td>{html.escape(cell)}</td>"
            for cell in (
                level,
                f"{line.statistic:.3g} ({line.measure})",
                p_words(line),
                line.found,
                line.null,
                line.advice,
            )
        )
        + "</tr>"
        for line, level in zip(report.lines, report.levels, strict=True)
    )
    pictures = "" if report.pictures is None else _figure(report.pictures)
    return (
        f"<section><h3>Check of {html.escape(report.target)}: {report.verdict}</h3>"
        f"<p>{html.escape(MEANINGS[report.verdict].capitalize())}. {html.escape(summary(report))}.</p>"
        f"<div class='scroll' tabindex='0'><table class='words'><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{pictures}</section>"
    )


def _figure(pictures: "Pictures") -> str:
    data = base64.b64encode(plot(pictures)).decode("ascii")
    words = "Marginals, energies and pairs of the draws (blue), and after the short chains (red)."
    return (
        f"<figure><div tabindex='0'><img class='wide' alt='{words}' src='data:image/png;base64,{data}'></div>"
        f"<figcaption>{words} Where the two differ, the draws were wrong.</figcaption></figure>"
    )


def plotting() -> "tuple[type[Figure], type[FigureCanvasAgg]]":
    """Return what Matplotlib draws with and writes with, or say how to get it."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "A page with plots stands on `matplotlib`, which is not installed. "
            "Install it with `pip install 'pushforward[plots]'`."
        ) from error
    return Figure, FigureCanvasAgg


def plot(pictures: "Pictures") -> bytes:
    """Return a picture of marginals, energies and pairs before and after, as PNG."""
    make_figure, make_canvas = plotting()
    before, after = pictures.before, pictures.after
    dim = before.shape[1]
    panels = min(dim, MAX_PANELS)
    count = panels + 1 + (dim > 1)
    figure = make_figure(figsize=(2.6 * min(count, 4), 2.4 * -(-count // 4)), layout="constrained")
    axes = iter(np.ravel(figure.subplots(-(-count // 4), min(count, 4), squeeze=False)))
    for i in range(panels):
        _histogram(next(axes), before[:, i], after[:, i], f"x[{i}]")
    _histogram(next(axes), pictures.energy_before, pictures.energy_after, "energy")
    if dim > 1:
        axis = next(axes)
        for points, colour in ((before, BEFORE), (after, AFTER)):
            axis.plot(*points[:SHOWN, :2].T, ".", ms=1.5, alpha=0.4, color=colour)
        low, high = np.quantile(np.vstack([before, after])[:, :2], [0.002, 0.998], axis=0)
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), title="x[0], x[1]")
    for axis in axes:
        axis.set_visible(False)
    buffer = io.BytesIO()
    make_canvas(figure).print_png(buffer)
    return buffer.getvalue()


def _histogram(axis, before: np.ndarray, after: np.ndarray, title: str) -> None:
    low, high = np.quantile(np.concatenate([before, after]), [0.002, 0.998])
    edges = np.linspace(low, max(high, low + 1e-12), 41)
    for values, colour in ((before, BEFORE), (after, AFTER)):
        axis.hist(np.clip(values, low, high), edges, density=True, histtype="step", color=colour)
    axis.set_title(title, fontsize=9)
    axis.set_yticks([])
