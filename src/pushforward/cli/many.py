"""`fit --distributed`: one of many processes; the first writes, and all end together or say why not."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pushforward.cli.errors import FAILED, CommandError, complain

if TYPE_CHECKING:
    from pushforward.run.fit import Fit


def join_others(
    wanted: bool, coordinator: str | None, num_processes: int | None, process_id: int | None
) -> bool:
    """Join the other processes, if there are any; return whether this one writes the files."""
    given = {"--coordinator": coordinator, "--num-processes": num_processes, "--process-id": process_id}
    if not wanted:
        if alone := [name for name, value in given.items() if value is not None]:
            raise CommandError(f"{alone[0]} is for many processes; add --distributed.")
        return True
    from pushforward import distributed

    try:
        distributed.initialize(coordinator, num_processes, process_id)
    except RuntimeError as error:
        raise CommandError(str(error), FAILED) from error
    return distributed.is_chief()


def who_keeps(chief: bool, done: "Fit", folder: Path, process_id: int | None) -> tuple[bool, Path]:
    """Return whether this process writes a run's folder, and which.

    If one was lost, it may be the first: each of the others keeps what it has, in a folder of its own.
    """
    if chief or done.outcome.name != "LOST_PROCESS":
        return chief, folder
    return True, folder.with_name(f"{folder.name}-process-{process_id}")


def end_of(done: "Fit", failure: str) -> None:
    """Wait for the others; or, if one was lost, say so and end."""
    from pushforward import distributed

    if done.outcome.name != "LOST_PROCESS":
        distributed.wait_for_all()
        return
    complain(
        f"{failure or done.outcome.value} The same command goes on from the checkpoint, if there is one."
    )
    raise typer.Exit(FAILED)
