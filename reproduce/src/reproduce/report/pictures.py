"""The picture of the study: the density above, draws below."""

import numpy as np
from matplotlib.axes import Axes

from reproduce.report.drawing import COLOURS, drawn, subplots
from reproduce.report.section import Figure

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
    return drawn(
        figure,
        "two_d_draws.png",
        "Targets and draws",
        "The density above; below, 2,000 draws of each one-shot sampler, and 500 chains, particles or "
        "thinned draws. Draws outside the window are not shown.",
    )


def _bare(axis: Axes, window: np.ndarray) -> None:
    axis.set_xlim(float(window[0]), float(window[1]))
    axis.set_ylim(float(window[2]), float(window[3]))
    axis.set_xticks([])
    axis.set_yticks([])
