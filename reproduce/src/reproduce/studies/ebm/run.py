"""Run the study: stage after stage, each from its last checkpoint."""

import time
from collections.abc import Callable
from pathlib import Path

from pushforward.programs import let_programs_go
from reproduce import records
from reproduce.data.images import images
from reproduce.records import Header, Record
from reproduce.studies.ebm.keeping import Store
from reproduce.studies.ebm.plan import made_images, plan
from reproduce.studies.ebm.recipes import recipe_of
from reproduce.studies.ebm.settings import Settings
from reproduce.studies.ebm.work import Work
from reproduce.studies.running import refuse_other_preset


def run(
    settings: Settings,
    folder: str | Path,
    *,
    fresh: bool = False,
    command: str = "pushforward study ebm",
    observe: Callable[[str], None] = lambda words: None,
) -> Path:
    """Run the stages of `settings` and return the path of the records, which the stage that judges writes.

    What a stage has done is in its checkpoint; rows of Langevin draws that are recorded are not drawn again.
    """
    folder = Path(folder)
    path, store = folder / f"{settings.study}.jsonl", Store(folder)
    # Data first: a missing folder must not cost the checkpoints of an older run.
    data = made_images(settings.made_images) if settings.made_images else images(settings.data)
    if fresh:
        store.clear()
        path.unlink(missing_ok=True)
    store.claim(settings)
    held: list[Record] = []
    if path.exists():
        old, held = records.read(path)
        refuse_other_preset(path, old, settings.preset)
    for line in plan(settings, data.shape, data.classes):
        observe(line)
    work = Work(settings, data, store, observe, held)
    for stage in settings.stages:
        let_programs_go()
        began = time.monotonic()
        found = getattr(work, stage)()
        observe(f"{stage}: done, {time.monotonic() - began:.0f} s")
        if stage == "judge":
            header = Header.of_this_machine(
                settings.study,
                settings.preset,
                settings.seed,
                command,
                recipe_of(settings.samplers[0], settings),
            )
            records.write(path, header, found)
    return path
