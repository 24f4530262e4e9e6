"""What a run's folder is made of: names that its writer and its reader must agree on."""

SAMPLER, ABOUT, HISTORY = "sampler.pf", "run.json", "history.jsonl"
FORMAT, VERSION = "pushforward-run", 1

Row = dict[str, int | float | None]
"""One line of history; a figure that was not finite is `None`, as strict JSON has it."""
