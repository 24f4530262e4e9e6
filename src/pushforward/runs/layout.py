"""What a run's folder is made of: names that its writer and its reader must agree on."""

from pushforward.container import SAMPLER as SAMPLER

ABOUT, HISTORY = "run.json", "history.jsonl"
MODEL = "model.py"
"""A copy of the user's own file, where the target came from one: a run can be made again from its folder."""

FORMAT, VERSION = "pushforward-run", 1

Row = dict[str, int | float | None]
"""One line of history; a figure that was not finite is `None`, as strict JSON has it."""
