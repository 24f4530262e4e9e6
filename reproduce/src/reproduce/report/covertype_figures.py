"""The figures of the study of Covertype: accuracy while training, calibration, moments against NUTS."""

import numpy as np

from reproduce.report.drawing import drawn, legend, subplots
from reproduce.report.section import Figure

COLOURS = {
    "ours": "#0072b2",
    "kl": "#d55e00",
    "fisher": "#009e73",
    "steingan": "#7a5195",
    "steingan-frame": "#7a5195",
    "svgd": "#cc79a7",
    "svgd-frame": "#cc79a7",
    "sgld": "#8c564b",
    "sgld-scaled": "#e69f00",
    "sgld-frame": "#e69f00",
    "dsvi": "#56b4e9",
    "dsvi-frame": "#56b4e9",
    "laplace": "#999999",
    "nuts": "#4d4d4d",
    "ours-plain": "#b59f00",
}


def _line(method: str) -> dict:
    return {
        "color": COLOURS.get(method, "#444444"),
        "ls": "--" if method.endswith("-frame") else "-",
        "lw": 1.3,
    }


def curve_figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return accuracy against iterations (the paper's figure) and log predictive against seconds."""
    names = [name for name in arrays if name.startswith("curve/")]
    if not names:
        return None
    figure, axes = subplots(1, 2, (9.5, 3.4))
    left, right = axes[0]
    for name in names:
        method, curve = name.split("/")[1], arrays[name]
        left.plot(curve[:, 0], 100 * curve[:, 2], label=method, **_line(method))
        right.plot(curve[:, 1], curve[:, 3], label=method, **_line(method))
    for axis, metric, scale, below, above in (
        (left, "accuracy", 100, 14, 2),
        (right, "log_predictive", 1, 0.17, 0.02),
    ):
        truth = arrays.get(f"reference/{metric}/covertype/0")
        if truth is not None:
            level = scale * float(truth)
            axis.axhline(level, color="#4d4d4d", lw=0.8, ls=":")
            axis.set_ylim(level - below, level + above)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        # Less than a decade would have every minor tick named, one over the other.
        axis.xaxis.set_minor_formatter("")
    left.set(xlabel="iterations", ylabel="held-out accuracy, %")
    right.set(xlabel="seconds of training", ylabel="log predictive, nats a row")
    legend(left, fontsize=7, ncols=2)
    return drawn(figure, "covertype_accuracy.svg", "Held-out accuracy and log predictive while training")


def calibration_figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return the share of `+1` against its predicted probability."""
    shown = [m for m in ("nuts", "ours", "kl", "svgd", "sgld-scaled") if f"calibration/{m}/0" in arrays]
    if not shown:
        return None
    figure, [[axis]] = subplots(1, 1, (4.2, 3.8))
    axis.plot([0, 1], [0, 1], color="#bbbbbb", lw=1)
    for method in shown:
        curve = arrays[f"calibration/{method}/0"]
        filled = curve[curve[:, 2] > 0]
        axis.plot(filled[:, 0], filled[:, 1], marker=".", label=method, **_line(method))
    axis.set(xlabel="predicted probability of +1", ylabel="share of +1 among held-out rows")
    legend(axis)
    return drawn(figure, "covertype_calibration.svg", "Calibration on the held-out part")


def moments_figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return, coordinate by coordinate, the error of the mean and the ratio of the spread."""
    reference = arrays.get("moments/nuts/covertype/0")
    shown = [m for m in ("laplace", "ours", "ours-plain") if f"moments/{m}/covertype/0" in arrays]
    if reference is None or not shown:
        return None
    figure, axes = subplots(2, 1, (9.0, 4.6))
    (top,), (bottom,) = axes
    for method in shown:
        mean, sd = arrays[f"moments/{method}/covertype/0"]
        place = np.arange(len(mean))
        style = {"color": COLOURS.get(method, "#444444"), "ms": 4, "ls": "", "marker": "o", "label": method}
        top.plot(place, (mean - reference[0]) / reference[1], **style)
        bottom.plot(place, sd / reference[1], **style)
    top.axhspan(-0.1, 0.1, color="#0072b2", alpha=0.08, lw=0)
    bottom.axhspan(0.9, 1.1, color="#0072b2", alpha=0.08, lw=0)
    top.set_ylim(-0.6, 0.6)
    bottom.set_ylim(0.5, 1.6)
    top.set_ylabel("mean error / sd", fontsize=9)
    bottom.set_ylabel("sd / sd of NUTS", fontsize=9)
    bottom.set_xlabel("coordinate: ten quantities, 44 indicators, bias, log alpha")
    legend(top, ncols=3)
    return drawn(
        figure, "covertype_moments.svg", "Every coordinate's mean and standard deviation against NUTS"
    )
