"""The paper's identities, told: errors against the size of the sample, its slips, and Student's t."""

import numpy as np
from scipy import stats

from reproduce.report.cells import Cells, Study, short
from reproduce.report.drawing import COLOURS, drawn, legend, subplots
from reproduce.report.section import Figure, Section, Table, told

NAMES = {
    "kl": "gradient of KL (eq. 3)",
    "fisher": "gradient of Fisher (eq. 9)",
    "proposition-1": "Proposition 1: value and slopes at the best critic",
    "theorem-2": "Theorem 2: gradient at the best critic",
    "fisher-first-term": "Fisher's first term alone (eq. 6)",
}

INTRO = (
    "Asked: do the paper's identities hold as the code computes them? They do. Each side is computed on its "
    "own: one from a density in closed form, by quadrature; the other by the objectives that training uses, "
    "on draws. Their distance falls with the root of the number of draws, to the noise of single precision. "
    "Where the second term of the Fisher gradient is left out, as in code that stops at eq. 6, the distance "
    "does not fall, and on MOG2 the gradient points the wrong way."
)

SLIPS = (
    ("KL gradient, appendix", "dominated convergence asks for a bound of p", "of its derivative in theta"),
    ("Fisher gradient, eq. 6", "alone it looks like an objective", "wrong sign for a sampler too narrow"),
    ("Proposition 1, proof", "argmin", "argmax: the critic maximises"),
    ("Theorem 2, proof, first line", "+ f* ds/dtheta", "- f* ds/dtheta; the next line is right"),
    ("Theorem 2", "the two gradients are the same", "up to the factor 1 / (2 lambda)"),
    ("Fisher gradient, eqs. 7 to 9", "the gradient of a vector", "its divergence is meant"),
    ("Algorithm 1", "L(phi) and L_SM(phi)", "one and the same loss"),
    ("Fisher divergence, section 2.2", "without the factor 1/2", "with it in section 3.2"),
    (
        "Table 1, Funnel",
        "a score that belongs to no density",
        "kept as `published_funnel`",
    ),
    ("2-D study", "eight targets", "six in Table 1, five in Table 2"),
)


def theory(study: Study) -> Section:
    """Return the study's tables and figures; what was not run is left out."""
    cells = Cells(study.records)
    slips = Table(
        "Slips of the paper",
        ("where", "the paper says", "it is"),
        SLIPS if cells.metrics() else (),
        "None of them changes a result of the paper but the Funnel's.",
        wraps=True,
    )
    figures = [_errors_figure(cells), _quantile_figure(study.arrays)]
    return told(study, "The theory, in numbers", INTRO, [_errors(cells), slips, _student(cells)], figures)


def _sizes(cells: Cells) -> list[str]:
    return [metric for metric in cells.metrics() if metric.startswith("error_")]


def _errors(cells: Cells) -> Table:
    sizes = _sizes(cells)
    rows = [
        (
            f"{words}, {target}",
            *(short(cells.value(metric, method, target), 2) for metric in (*sizes, "bias")),
            f"{cells.value('cosine', method, target):.3f}",
        )
        for method, words in NAMES.items()
        for target in cells.targets("bias")
        if cells.get("bias", method, target) is not None
    ]
    return Table(
        "Relative error of each identity against the number of draws",
        ("identity", *(f"{int(size.split('_')[1]):,}" for size in sizes), "mean of all", "cosine"),
        tuple(rows),
        "Of all parameters of a map with five, means over repeats; then of the mean over the repeats at the "
        "largest size, and the cosine of its angle to the truth. Quadrature has 96 nodes along each latent.",
    )


def _errors_figure(cells: Cells) -> Figure | None:
    sizes = _sizes(cells)
    if not sizes:
        return None
    figure, [[axis]] = subplots(1, 1, (5.6, 3.8))
    n = np.array([int(size.split("_")[1]) for size in sizes])
    colours = dict(zip(NAMES, ("#d55e00", "#009e73", "#0072b2", "#cc79a7", "#4d4d4d"), strict=True))
    for method, words in NAMES.items():
        lines = [[cells.value(s, method, t) or np.nan for s in sizes] for t in cells.targets("bias")]
        for number, line in enumerate(lines):
            dashes = "--" if method == "fisher-first-term" else "-"
            label = words if number == 0 else None
            axis.plot(n, line, ls=dashes, marker=".", color=colours[method], lw=1.2, label=label)
    axis.plot(n, 5.0 / np.sqrt(n), color="#bbbbbb", lw=3, zorder=0, label="one over the root")
    axis.set(xscale="log", yscale="log", xlabel="draws", ylabel="relative error")
    legend(axis, fontsize=7)
    words = "A line for each identity and density. Dashed: the first term alone, no gradient of Fisher."
    return drawn(figure, "theory_errors.svg", "Identities against the number of draws", words)


def _student(cells: Cells) -> Table:
    targets = cells.targets("quantile_error")
    rows = [
        (f"{method}, {words}", *cells.across(metric, method, targets, lambda c: f"{100 * c.value:.1f} %"))
        for metric, words in (("quantile_error", "0.5-99.5 %"), ("quantile_error_inner", "5-95 %"))
        for method in cells.methods(metric)
    ]
    return Table(
        "Student's t: the largest relative error of a quantile",
        ("method, range", *targets),
        tuple(rows),
        "Of a million draws against the true quantiles. The paper shows one such law, of degrees of freedom "
        "that it does not name.",
    )


def _quantile_figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return quantiles against true quantiles, a panel per number of degrees of freedom."""
    names = [name for name in arrays if name.startswith("quantiles/")]
    targets = sorted({name.split("/")[2] for name in names}, key=lambda t: -float(t.rsplit("_", 1)[1]))
    if not targets:
        return None
    figure, axes = subplots(1, len(targets), (3.4 * len(targets), 3.4), boxed=True)
    for axis, target in zip(axes[0], targets, strict=True):
        df = float(target.rsplit("_", 1)[1])
        truth = stats.t.ppf(arrays["levels"], df)
        limit = float(np.max(np.abs(truth)))
        axis.plot([-limit, limit], [-limit, limit], color="#999999", lw=1, label="exact")
        for name in (name for name in names if name.endswith(f"/{target}")):
            method = name.split("/")[1]
            axis.plot(truth, arrays[name], ".", ms=3.5, color=COLOURS.get(method, "#444444"), label=method)
        axis.axvspan(*stats.t.ppf([0.005, 0.995], df), color="#0072b2", alpha=0.07, lw=0)
        axis.set_title(f"Student's t, {df:g} degrees of freedom", fontsize=10)
        axis.set_xlabel("true quantile")
    axes[0][0].set_ylabel("quantile of the draws")
    legend(axes[0][0])
    return drawn(
        figure,
        "theory_student_t.png",
        "Student's t: quantiles of a million draws",
        "From 0.1 % to 99.9 %; the shaded band holds 99 % of the mass, within which quantiles are compared.",
    )
