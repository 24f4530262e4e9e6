"""What a command is asked to work on: the sampler of a run or of a file, and the target it is of."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushforward.cli.console import clean
from pushforward.cli.errors import CommandError
from pushforward.extensions import SAMPLERS, extensions, remedy

if TYPE_CHECKING:
    from pushforward.base import Target
    from pushforward.sampler import Sampler


def shipped_sampler(source: Path) -> Callable[..., None] | None:
    """Return what writes draws of a sampler that comes with a package; `None` for a file of the user's."""
    if source.exists():
        return None
    if words := remedy(SAMPLERS, str(source)):
        raise CommandError(words)
    found = extensions(SAMPLERS).get(str(source))
    return None if found is None else found.load()


def load_sampler(source: Path) -> "Sampler":
    """Return the sampler of a run's folder or of a file."""
    from pushforward.runs import load_run
    from pushforward.sampler import load

    return load_run(source).sampler() if source.is_dir() else load(source)


def target_of(
    source: Path, sampler: "Sampler", spec: str, dim: int | None, data: Path | None, why: str = ""
) -> "Target":
    """Return the target of a sampler: as `--target` names it, or a built-in one that its run or file names.

    A user's file is never run because a run says so. `why` is what needs the target, where that is not plain.
    """
    from pushforward.cli.models import read_data
    from pushforward.cli.specs import find_target, is_file
    from pushforward.runs import load_run
    from pushforward.targets import TARGETS

    about = load_run(source).about["target"] if source.is_dir() else {"spec": sampler.about.get("target")}
    told: Any = spec or about["spec"]
    if not spec and not (isinstance(told, str) and told in TARGETS and not is_file(told)):
        raise CommandError(
            f"{why or '--target is needed'}: {source} was not fitted to a built-in target ({clean(told)}), "
            "and no file is run unless you name it. Add, for instance, `--target model.py:log_density`."
        )
    found = find_target(told, dim, read_data(data), otherwise=sampler.dim)
    if found.dim != sampler.dim:
        raise CommandError(f"--target has {found.dim} coordinates; the sampler has {sampler.dim}.")
    return found
