"""From a folder of records to a folder of documents, and one page that opens offline.

In the page styles are inside and pictures are data: it makes no request to anyone.
"""

import base64
import html
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pushforward.atomic import write_atomically
from pushforward.page import STYLE
from reproduce.records import Header
from reproduce.report.against import against
from reproduce.report.cells import Study, read_results
from reproduce.report.covertype import covertype
from reproduce.report.ebm import ebm
from reproduce.report.faults import faults, mutated_files
from reproduce.report.hard import hard
from reproduce.report.matchings import matchings
from reproduce.report.models import models
from reproduce.report.section import Figure, Section, generic, prose
from reproduce.report.theory import theory
from reproduce.report.trust import trust
from reproduce.report.two_d import two_d

TYPES = {"png": "image/png", "svg": "image/svg+xml"}


def page(parts: list[tuple[Section, Header]]) -> str:
    """Return the whole page."""
    links = "".join(f"<a href='#{html.escape(s.name)}'>{html.escape(s.title)}</a>" for s, _ in parts)
    body = "".join(_section(section, header) for section, header in parts)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>pushforward: results</title><style>{STYLE}</style></head><body>"
        "<h1>pushforward: results</h1><p>Every figure on this page is computed from the records of a study; "
        f"nobody typed a number.</p><nav>{links}</nav>{body}"
        "<footer><p>Made by <code>pushforward report</code>.</p></footer></body></html>\n"
    )


def provenance(header: Header) -> str:
    """Return where the records came from, in one sentence."""
    versions = ", ".join(f"{name} {version}" for name, version in header.versions.items())
    return f"preset {header.preset}, {header.cores} cores; {versions}"


def _section(section: Section, header: Header) -> str:
    words = f"<p>{prose(section.words)}</p>" if section.words else ""
    return (
        f"<article id='{html.escape(section.name)}'><h2>{html.escape(section.title)}</h2>{words}"
        f"<p>Made by <code>{html.escape(header.command)}</code> ({html.escape(provenance(header))}).</p>"
        + "".join(map(_figure, section.figures[:1]))
        + "".join(table.as_html() for table in section.tables)
        + "".join(map(_figure, section.figures[1:]))
        + "</article>"
    )


def _figure(figure: Figure) -> str:
    kind = TYPES[figure.name.rsplit(".", 1)[1]]
    data = base64.b64encode(figure.data).decode("ascii")
    return (
        f"<figure><div tabindex='0'><img class='wide' alt='{html.escape(figure.title)}' "
        f"src='data:{kind};base64,{data}'></div>"
        f"<figcaption><b>{html.escape(figure.title)}.</b> {prose(figure.words)}</figcaption></figure>"
    )


SECTIONS: dict[str, Callable[[Study], Section]] = {
    "covertype": covertype,
    "ebm": ebm,
    "faults": faults,
    "hard": hard,
    "models": models,
    "mutated_files": mutated_files,
    "theory": theory,
    "matchings": matchings,
    "trust": trust,
    "two_d": two_d,
}
"""Who tells which study; others are told by one plain table per metric."""


def write_report(folder: str | Path, out: str | Path) -> list[Path]:
    """Write `out/<study>.md` and `out/figures/` for every study, and `out/report.html` for all of them."""
    studies = read_results(folder)
    out = Path(out)
    parts = [(SECTIONS.get(study.name, generic)(study), study.header) for study in studies]
    # First, since it is what a reader asks; its figures are the studies' own.
    parts.insert(0, (against(studies), replace(studies[0].header, command="pushforward report")))
    written = []
    for section, header in parts:
        for figure in section.figures:
            written.append(_write(out / "figures" / figure.name, figure.data))
        written.append(_write(out / f"{section.name}.md", _markdown(section, header).encode("utf-8")))
    written.append(_write(out / "report.html", page(parts).encode("utf-8")))
    return written


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
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
