"""One page that opens offline: styles inside, pictures as data, no request to anyone."""

import base64
import html

from pushforward.records import Header
from pushforward.report.section import Figure, Section
from pushforward.report.table import prose

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#d8dde3;--soft:#f4f6f8;--good:#0a6b3d;
--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#14171a;--line:#363c43;--soft:#1d2125;
--good:#5fd39a;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;font:1rem/1.55 system-ui,sans-serif;color:var(--ink);
background:var(--paper)}
h1{font-size:1.7rem;line-height:1.2}h2{margin-top:2.5rem;border-bottom:2px solid var(--line)}
h3{margin:2rem 0 .4rem}p{max-width:46rem;margin:.4rem 0}
nav a{margin-right:1rem}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.4rem;margin:.6rem 0}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
thead th{background:var(--soft)}
th:first-child{text-align:left;position:sticky;left:0;background:var(--soft);white-space:pre-wrap;
min-width:7rem;max-width:15rem;font-weight:600}
table.words td,table.words thead th{text-align:left;white-space:normal;min-width:8rem}
table.words th:first-child{min-width:9rem}table.words td:last-child{min-width:16rem}
td.good{color:var(--good);font-weight:600}td.bad{color:var(--bad);font-weight:600}
figure{margin:1.2rem 0}figure div{background:#fff;border:1px solid var(--line);border-radius:.4rem;
overflow-x:auto;padding:.4rem}
figure img{display:block;width:100%;height:auto}figure img.wide{min-width:38rem}
figcaption{font-size:.9rem;max-width:46rem;margin-top:.3rem}
code{background:var(--soft);padding:.1rem .3rem;border-radius:.2rem;overflow-wrap:anywhere}
footer{margin-top:3rem;font-size:.85rem;border-top:1px solid var(--line)}
"""

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
