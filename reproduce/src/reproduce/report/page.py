"""One page that opens offline: styles inside, pictures as data, no request to anyone."""

import base64
import html

from pushforward.page import STYLE
from reproduce.records import Header
from reproduce.report.section import Figure, Section
from reproduce.report.table import prose

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
