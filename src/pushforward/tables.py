"""Small tables for people: as lines of text and as HTML for notebooks."""

import html
from collections.abc import Mapping, Sequence

SHOWN, FEW = 40, 8
"""Rows of a table that is printed, and names that fit into one line; how many more there are is said."""


def brief(shapes: Mapping[str, Sequence[int]]) -> str:
    """Return names with their shapes in one line: `mu, tau, theta[8]`."""
    words = [name + (str(list(shape)) if shape else "") for name, shape in shapes.items()]
    more = [f"and {len(words) - FEW:,} more"] if len(words) > FEW else []
    return ", ".join([*words[:FEW], *more])


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in columns, the first of them left-aligned and the others right-aligned."""
    shown = [list(titles), *map(list, rows[:SHOWN])]
    widths = [max(len(row[k]) for row in shown) for k in range(len(titles))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in shown
    ]
    return "\n".join([*lines, *_more(rows)])


def html_table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML, everything in it escaped."""
    head, *body = (
        "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for tag, row in [("th", titles), *(("td", row) for row in rows[:SHOWN])]
    )
    more = "".join(f"<p>{line}</p>" for line in _more(rows))
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead>{head}</thead>"
        f"<tbody>{''.join(body)}</tbody></table>{more}"
    )


def _more(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"... and {len(rows) - SHOWN:,} more"] if len(rows) > SHOWN else []
