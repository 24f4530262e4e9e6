"""How a study takes up its records again: whole rows stay, what an interruption left of others goes."""

from collections.abc import Callable
from pathlib import Path

from reproduce import records
from reproduce.records import Header, Record
from reproduce.studies.row import DONE, Row, row_of


def begin(
    path: Path,
    header: Header,
    *,
    fresh: bool,
    row_of: Callable[[Record], Row] = row_of,
    clear: Callable[[], None] = lambda: None,
) -> set[Row]:
    """Return the rows that are recorded to their end, in a file that holds nothing else.

    **Arguments:**

    - `path`: of the records; made, with `header`, where there is none.
    - `fresh`: begin again, whatever is there.
    - `row_of`: returns the row that a record came from.
    - `clear`: called where a new file begins, to forget what earlier rows left beside it.
    """
    if fresh or not path.exists():
        clear()
        records.write(path, header)
        return set()
    text = path.read_text(encoding="utf-8")
    if not text.endswith("\n"):
        # The line that a kill tore in two.
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    old, held = records.read(path)
    if old.preset != header.preset:
        raise ValueError(
            f"`folder` holds the preset {old.preset!r} in {path.name}; got {header.preset!r}. "
            "Choose another folder, or begin again with `--fresh`."
        )
    done = {row_of(record) for record in held if record.metric == DONE}
    whole = [record for record in held if row_of(record) in done]
    if len(whole) < len(held):
        records.write(path, old, whole)
    return done
