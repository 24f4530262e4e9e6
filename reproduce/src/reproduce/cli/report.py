"""`pushforward report`: tables, figures and a page from the records of studies."""

from pathlib import Path
from typing import Annotated

import typer

from pushforward.cli.console import note, stdout


def report(
    folder: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder of records (*.jsonl).")],
    out: Annotated[Path, typer.Option(help="Folder for the documents.")] = Path("docs"),
) -> None:
    """Write Markdown tables, figures and one self-contained page from the records in a folder.

    [bold]Example[/bold]

      pushforward report results/ --out docs/
    """
    from reproduce.report import write_report

    written = write_report(folder, out)
    note(f"wrote {len(written)} files; open {out / 'report.html'}")
    for path in written:
        stdout().print(str(path), markup=False, soft_wrap=True)
