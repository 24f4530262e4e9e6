"""The paper against ours: what the rows of `words/paper.md` leave open, read off the records or judged."""

from collections.abc import Callable
from typing import Any

from reproduce.report import paper
from reproduce.report.cells import Cells, Study, short, times
from reproduce.report.section import Section, prose_of, table_in


class Found(dict[str, str]):
    """What was found by name; what was not is a dash, and its verdict open."""

    def __missing__(self, name: str) -> str:
        return "open" if name.endswith("_verdict") else "-"

    def compare(
        self, name: str, ours: float | None, theirs: float, tell: Callable[[float], str], **how: Any
    ) -> None:
        """Add ours, the paper's and the verdict."""
        if ours is not None:
            self |= {name: tell(ours), f"{name}_paper": tell(theirs)}
            self[f"{name}_verdict"] = verdict(ours, theirs, **how)


def verdict(ours: float, theirs: float, spread: float = 0.0, *, high: bool = False) -> str:
    """Return the verdict on a figure that should be low, or `high`."""
    gap = theirs - ours if high else ours - theirs
    return "better" if gap <= 0 else "done" if gap <= spread else "worse"


def against(studies: list[Study]) -> Section:
    """Return the page of all studies that were run."""
    found, cells = Found(), {study.name: Cells(study.records) for study in studies}
    for name, read in {"theory": _theory, "two_d": _plane, "covertype": _covertype, "ebm": _images}.items():
        if name in cells:
            read(found, cells[name])
    if "matchings" in cells:
        found |= {"matchings": "six, [timed](matchings.md)", "matchings_verdict": "done"}
    words = prose_of("paper")
    tables = tuple(table_in(title, text.format_map(found)) for title, text in words.notes.items())
    verdicts = [row[4] for table in tables for row in table.rows]
    counts = {word: verdicts.count(word) for word in ("done", "better", "worse", "open")}
    intro = words.intro.format(number=len(verdicts), **counts)
    return Section("paper", words.title, intro, tables)


def _theory(found: Found, cells: Cells) -> None:
    if cells.methods("quantile_error"):
        found["student_verdict"] = "done"
    for method in cells.methods("bias"):
        worst = max(c.value for t in cells.targets("bias") if (c := cells.get("bias", method, t)))
        found[f"{method}_identity"] = f"identity within {short(worst, 2)} of its size"


def _plane(found: Found, cells: Cells) -> None:
    for method in paper.KSD:
        metric = "ksd_imq_v_best" if method in cells.methods("ksd_imq_v_best") else "ksd_imq_v"
        # Chains and particles were run with the score of the paper's Funnel too.
        published = metric == "ksd_imq_v" and cells.get(metric, method, "published_funnel") is not None
        targets = [t if t != "funnel" or not published else "published_funnel" for t in paper.TARGETS]
        pairs = [
            (c, paper.ksd(method, t)) for t in targets if (c := cells.get(metric, method, t)) is not None
        ]
        verdicts = [verdict(cell.value, *theirs) for cell, theirs in pairs if theirs is not None]
        if len(verdicts) == len(targets):
            bad = verdicts.count("worse")
            found[f"{method}_ksd"] = " ".join(f"{cell.value:.3f}" for cell, _ in pairs)
            found[f"{method}_ksd"] += f"; worse on {bad}" if bad else ""
            found[f"{method}_ksd_paper"] = " ".join(f"{theirs[0]:.3f}" for _, theirs in pairs if theirs)
            found[f"{method}_ksd_verdict"] = next(v for v in ("worse", "done", "better") if v in verdicts)
    ms = cells.value("seconds_per_1k_draws", "kl", "mog2")
    theirs = paper.seconds("kl", "mog2") or 1.0
    found.compare("kl_ms", ms, theirs, lambda s: short(1e3 * s))
    for method in ("ld", "hmc", "svgd"):
        ratio, seconds = cells.value("ratio_to_kl", method, "mog2"), paper.seconds(method, "mog2") or 1.0
        found.compare(f"{method}_ratio", ratio, seconds / theirs, times, high=True)

    def of(name: str, method: str = "kl") -> str:
        value = cells.value(f"setting_{name}", method, paper.TARGETS[0])
        return "-" if value is None else f"{value:,g}"

    found |= {
        "kl_net": f"{of('width')} x {of('depth')}",
        "kl_training": f"{of('batch_size')}, {of('learning_rate')}, {of('num_steps')}",
        "kl_score": f"{of('score_steps')} of {of('score_batch_size')}",
        "kl_latents": of("latents"),
        "flow_training": f"{of('width', 'flow')}, {of('num_steps', 'flow')}",
    }


def _covertype(found: Found, cells: Cells) -> None:
    percent = lambda share: f"{share:.2f}"  # noqa: E731
    for method in ("nuts", "ours", *paper.ACCURACY):
        cell = cells.get("accuracy", method, "covertype")
        if cell is None:
            continue
        found[f"{method}_accuracy"] = percent(100 * cell.value)
        found[f"{method}_splits"] = str(cell.seeds)
        if method in paper.ACCURACY:
            theirs, spread = paper.ACCURACY[method]
            found.compare(f"{method}_accuracy", 100 * cell.value, theirs, percent, spread=spread, high=True)
        steps = cells.value("iterations", method, "covertype")
        found[f"{method}_iterations"] = "-" if steps is None else f"{steps:,.0f}"


def _images(found: Found, cells: Cells) -> None:
    def value(metric: str, method: str) -> float | None:
        return cells.value(metric, method, "images")

    rows = [
        v
        for m in cells.methods("fid_as_rows")
        if m.startswith("langevin-") and (v := value("fid_as_rows", m))
    ]
    fids = [fid for method, (fid, _, _) in paper.IMAGES.items() if method != "kl"]
    for method in ("kl", "kl-plain"):
        fid = value("fid_as_rows", method)
        if fid is not None and rows:
            found.compare(f"{method}_fid", fid / min(rows), paper.IMAGES["kl"][0] / min(fids), times)
    slow, fast = (value("seconds_per_image", method) for method in ("langevin-250", "kl"))
    if slow and fast:
        theirs = paper.IMAGES["langevin-250"][2] / paper.IMAGES["kl"][2]
        found.compare("ebm_ratio", slow / fast, theirs, times, high=True)
    sizes = (value("parameters", method) or 0.0 for method in ("energy", "kl"))
    found["ebm_sizes"] = " / ".join(f"{size:,.0f}" for size in sizes)
    for name, method in (("plain_steps", "kl-plain"), ("energy_steps", "energy")):
        found[name] = f"{value('iterations', method) or 0:,.0f}"
