"""The check, checked: its false alarms on exact draws, its power on planted defects, and its cost."""

from reproduce.report.cells import Cells, Study
from reproduce.report.section import Section, Table, told

EXACT = "exact"
MAX_ALARMS, MIN_POWER, MAX_SECONDS = 0.05, 0.9, 60.0


def trust(study: Study) -> Section:
    """Return the tables; what was not run is left out."""
    cells = Cells(study.records)
    tables = (_alarms(cells), _power(cells), _lines(cells), _cost(cells))
    return told(study, tables)


def _alarms(cells: Cells) -> Table:
    rows, total, count = [], 0.0, 0
    for target in cells.targets("not_trusted"):
        cell = cells.get("not_trusted", EXACT, target)
        if cell is None:
            continue
        worse = cells.across("not_trusted_at_all", EXACT, [target], _share)
        total, count = total + cell.value * cell.repeats, count + cell.repeats
        rows.append((target, _share(cell), *worse, _word(good=cell.value <= MAX_ALARMS)))
    if count:
        rows.append(("all", f"{total / count:.1%} of {count}", "", _word(good=total / count <= MAX_ALARMS)))
    return Table(
        "False alarms: exact draws not trusted",
        ("target", "not trusted", "of these, do not trust", f"at most {MAX_ALARMS:.0%}"),
        tuple(rows),
    )


def _power(cells: Cells) -> Table:
    targets = cells.targets("not_trusted")
    rows = [
        (f"{m}: {t}", _share(cell), _word(good=cell.value >= MIN_POWER), _seen_by(cells, m, t))
        for m in cells.methods("not_trusted")
        for t in targets
        if m != EXACT and (cell := cells.get("not_trusted", m, t)) is not None
    ]
    return Table(
        "Power: planted defects not trusted",
        ("defect: target", "not trusted", f"at least {MIN_POWER:.0%}", "lines that flag it"),
        tuple(rows),
        wraps=True,
    )


def _names(cells: Cells) -> list[str]:
    return [metric for metric in cells.metrics() if metric.startswith("flagged: ")]


def _seen_by(cells: Cells, method: str, target: str) -> str:
    found = [(name.removeprefix("flagged: "), cells.get(name, method, target)) for name in _names(cells)]
    shown = sorted(((cell.value, name) for name, cell in found if cell and cell.value > 0), reverse=True)
    return ", ".join(f"{name} {value:.0%}" for value, name in shown) or "none"


def _lines(cells: Cells) -> Table:
    """Return how often each line alone raises a false alarm."""
    targets = [t for t in cells.targets("not_trusted") if cells.get("not_trusted", EXACT, t)]
    rows = [
        (name.removeprefix("flagged: "), *cells.across(name, EXACT, targets, lambda c: f"{c.value:.0%}"))
        for name in _names(cells)
        if any(cells.get(name, EXACT, target) for target in targets)
    ]
    return Table("Which line raises the false alarms", ("line", *targets), tuple(rows))


def _cost(cells: Cells) -> Table:
    rows = []
    for target in cells.targets("check_seconds"):
        found = [
            cells.get(m, EXACT, target) for m in ("check_seconds", "census_seconds", "first_check_seconds")
        ]
        if None in found:
            continue
        later, census, first = (cell for cell in found if cell is not None)
        whole = census.worst + first.worst
        bar = _word(good=whole <= MAX_SECONDS)
        rows.append((target, f"{later.value:.1f}", f"{census.value:.1f}", f"{whole:.1f}", bar))
    return Table(
        "Seconds per check",
        ("target", "compiled, census at hand", "census", "all, compilation included (worst)", "at most 60"),
        tuple(rows),
    )


def _share(cell) -> str:
    return f"{cell.value:.1%} of {cell.repeats}"


def _word(*, good: bool) -> str:
    return "met" if good else "missed"
