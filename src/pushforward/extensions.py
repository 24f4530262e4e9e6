"""What other installed packages add: commands, targets, samplers and networks, by their entry points."""

from functools import cache
from importlib import metadata

COMMANDS, SAMPLERS, TARGETS = "pushforward.commands", "pushforward.samplers", "pushforward.targets"
NETWORKS = "pushforward.networks"
"""Groups of entry points: a function that Typer understands; one that writes draws of a sampler that comes
with a package; a constructor of a target without arguments; a class of networks that a file may name."""

REPRODUCE = {
    COMMANDS: ("demo", "study", "report"),
    SAMPLERS: ("mnist", "mnist-fisher"),
    NETWORKS: ("NoiseHead",),
    TARGETS: (
        *("donut", "published_funnel", "student_t", "student_t_mixture"),
        *("double_well", "many_well", "phi4", "dw4", "lj13"),
        *("rezende1", "rezende2", "rezende3", "rezende4"),
    ),
}
"""What `pushforward-reproduce` adds, so that a message can say so where it is not installed."""


@cache
def extensions(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group by name, none of them loaded."""
    return {entry.name: entry for entry in metadata.entry_points(group=group)}


def remedy(group: str, name: str) -> str | None:
    """Return how to get what is not here, or `None` where no package is known to have it."""
    if name not in REPRODUCE[group] or name in extensions(group):
        return None
    return (
        f"{name!r} comes with the package `pushforward-reproduce`, which is not installed. "
        "Install it with `pip install '.[reproduce]'` in a checkout of the repository."
    )
