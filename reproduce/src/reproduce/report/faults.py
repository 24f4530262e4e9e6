"""What was tried to break it: kills, full disks, and files that are not what they should be."""

from reproduce.report.cells import Study, short
from reproduce.report.section import Section, Table, told

TRIED = {
    "sigkill_fit": "a fit with a checkpoint is killed (SIGKILL) at a random moment, then run again",
    "sigkill_study": "a study is killed (SIGKILL) at a random moment, then run again",
    "sigterm_fit": "a fit with a checkpoint is told to end (SIGTERM), then run again",
    "full_disk": "a file is written, and every other time the disk has no room for it",
    "bad_files": "a damaged or forged file is read",
}

LOST = {
    "lost": "{} not as if nobody had disturbed it",
    "other_errors": "{} other errors",
    "hangs": "{} took too long",
    "too_much_memory": "{} took too much memory",
    "executed": "{} ran something",
}

KINDS = {
    "sampler": "a sampler (`.pf`), read by `load`",
    "runtime": "a sampler, read by NumPy alone",
    "checkpoint": "a checkpoint of a training",
    "found": "a checkpoint of the stages before it",
    "run": "`run.json` of a run's folder",
    "history": "`history.jsonl` of a run's folder",
    "records": "records of a study",
    "results": "a folder of records, read by `report`",
    "note": "the note beside a part of draws",
    "part": "a part of draws",
    "join": "a part of draws, by the command `join`",
    "show sampler": "a sampler, by the command `show`",
    "show run": "`run.json`, by the command `show`",
    "show draws": "draws as `.npz`, by the command `show`",
    "check": "draws as `.npz`, as the command `check` reads them",
    "npy": "an array (`.npy`)",
    "npz": "an archive of arrays (`.npz`), as `--data` takes",
    "named npy": "draws as `.npy`",
    "named npz": "draws as `.npz`",
    "csv": "draws as `.csv`",
    "parquet": "draws as `.parquet`",
    "nc": "draws as `.nc`",
    "idx": "images (`idx`)",
}


def _by_target(study: Study) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for record in study.records:
        found.setdefault(record.target, {})[record.metric] = record.value
    return found


def faults(study: Study) -> Section:
    """Return one row for each way to disturb it."""
    rows = []
    for target, found in _by_target(study).items():
        times = found.get("kills", found.get("writes", found.get("files")))
        whole = f"{found['runs']:,.0f} runs came to their end" if "runs" in found else ""
        if "refused" in found:
            whole = f"{found['refused']:,.0f} refused, {found['valid']:,.0f} valid after all"
        lost = [words.format(f"{found[name]:,.0f}") for name, words in LOST.items() if found.get(name)]
        about = TRIED.get(target, target.replace("_", " "))
        rows.append((about, "-" if times is None else f"{times:,.0f}", whole, "; ".join(lost) or "nothing"))
    columns = ("what was done", "times", "what came of it", "what was lost")
    words = (
        "A run that was disturbed is held against one that was not, bit by bit: its sampler and its history, "
        "or all of a study's figures but times. Of a write that fails, the file that was there before must "
        "still be there, whole, and nothing else."
    )
    table = Table("What was tried, how often, and what was lost", columns, tuple(rows), words, wraps=True)
    return told(study, [table])


def mutated_files(study: Study) -> Section:
    """Return one row for each kind of file."""
    found = _by_target(study)
    most = found.pop("all", {})
    names = ("files", "refused", "valid", "other_errors", "hangs", "too_much_memory", "executed")
    totals = {name: sum(each[name] for each in found.values()) for name in (*names, "written_outside")}
    rows = [
        (KINDS.get(kind, kind), *(f"{each[name]:,.0f}" for name in names), f"{each['written_outside']:,.0f}")
        for kind, each in (*found.items(), ("all of them", totals))
    ]
    titles = (
        *("kind of file", "files read", "refused, and why", "valid after all", "any other error"),
        *("over 2 s", "over its memory", "ran something", "wrote elsewhere"),
    )
    words = (
        "Honest files are torn, flipped, swapped and swollen, or made to lie and then signed anew. A reader "
        "must return a valid object or raise a `BadFileError` that names the file. It may compute for 2 "
        "seconds, and take twice the file's size and 16 MB of memory. "
    )
    if "longest" in most:
        words += (
            f"The slowest file took {short(most['longest'])} seconds of computing; the largest took "
            f"{short(most['most'] / 1e6)} MB beyond twice its size."
        )
    table = Table("Every reader, file by file", titles, tuple(rows), words)
    return told(study, [table])
