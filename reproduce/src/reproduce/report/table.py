"""A table, once, as Markdown and as HTML."""

import html
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of text under a heading; the first column names the row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: str = ""
    """What a reader must know to read it."""
    wraps: bool = False
    """Whether its cells are sentences."""

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"a row of {self.title!r} has {len(row)} cells; {len(self.columns)} columns."
                )

    def markdown(self) -> str:
        """Return the table in Markdown, with its heading."""
        lines = [f"## {self.title}", ""]
        if self.words:
            lines += [self.words, ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("|" + "|".join(["---"] + ["---:"] * (len(self.columns) - 1)) + "|")
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def as_html(self) -> str:
        """Return the table in HTML, in a box that scrolls sideways by itself."""
        head = "".join(f"<th scope='col'>{html.escape(c)}</th>" for c in self.columns)
        body = "".join(
            f"<tr><th scope='row'>{html.escape(row[0])}</th>"
            + "".join(f"<td{_mark(cell)}>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        style = " class='words'" if self.wraps else ""
        words = f"<p>{prose(self.words)}</p>" if self.words else ""
        return (
            f"<section><h3>{html.escape(self.title)}</h3>{words}<div class='scroll' tabindex='0'>"
            f"<table{style}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>"
        )


def prose(text: str) -> str:
    """Return text for a page, with what stands between back-quotes as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _mark(cell: str) -> str:
    """Colour the cells that say whether a bar was met."""
    for word, name in (("met", "good"), ("missed", "bad"), ("diverged", "bad")):
        if cell == word or cell.startswith(word + " "):
            return f" class='{name}'"
    return ""
