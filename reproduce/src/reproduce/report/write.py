"""From a folder of records to a folder of documents."""

from collections.abc import Callable
from pathlib import Path

from reproduce.records import Header
from reproduce.report.covertype import covertype
from reproduce.report.ebm import ebm
from reproduce.report.hard import hard
from reproduce.report.models import models
from reproduce.report.page import page, provenance
from reproduce.report.results import Study, read_results
from reproduce.report.section import Section, generic
from reproduce.report.spine import spine
from reproduce.report.trust import trust
from reproduce.report.two_d import two_d

SECTIONS: dict[str, Callable[[Study], Section]] = {
    "covertype": covertype,
    "ebm": ebm,
    "hard": hard,
    "models": models,
    "spine": spine,
    "trust": trust,
    "two_d": two_d,
}
"""Who tells which study; others are told by one plain table per metric."""


def write_report(folder: str | Path, out: str | Path) -> list[Path]:
    """Write `out/<study>.md` and `out/figures/` for every study, and `out/report.html` for all of them."""
    studies = read_results(folder)
    out = Path(out)
    parts = [(SECTIONS.get(study.name, generic)(study), study.header) for study in studies]
    written = []
    for section, header in parts:
        for figure in section.figures:
            written.append(_write(out / "figures" / figure.name, figure.data))
        written.append(_write(out / f"{section.name}.md", _markdown(section, header).encode("utf-8")))
    written.append(_write(out / "report.html", page(parts).encode("utf-8")))
    return written


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _markdown(section: Section, header: Header) -> str:
    lines = [f"# {section.title}", ""]
    if section.words:
        lines += [section.words, ""]
    made = f"Made by `{header.command}` ({provenance(header)}), then `pushforward report`. "
    lines += [made + "Every number is computed from the records.", ""]
    pictures = [f"![{f.title}](figures/{f.name})\n\n**{f.title}.** {f.words}\n" for f in section.figures]
    lines += pictures[:1]
    lines += [f"{table.markdown()}\nCommand: `{header.command}`\n" for table in section.tables]
    return "\n".join(lines + pictures[1:])
