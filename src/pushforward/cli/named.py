"""`pushforward sample` of a sampler that knows names: constrained values, block by block."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pushforward.cli.errors import CommandError

if TYPE_CHECKING:
    from pushforward.base import Target
    from pushforward.draws import Draws
    from pushforward.parameters import Parameters
    from pushforward.sampler import Sampler

WHOLE = (".npz", ".nc")
"""Formats that are written in one piece, from memory."""

MAX_WHOLE = 2**32
"""Bytes of draws that may be held for them."""

Write = Callable[[np.ndarray], None]


def numbers(parameters: "Parameters") -> int:
    """Return how many numbers a draw has, inside its constraints."""
    return sum(int(np.prod(item.shape, dtype=int)) for item in parameters.items)


def check_memory(out: Path, num_samples: int, width: int) -> None:
    """Refuse to hold more draws in memory than there should be."""
    wanted = 16 * num_samples * width
    if out.suffix in WHOLE and wanted > MAX_WHOLE:
        raise CommandError(
            f"--out: {num_samples:,} named draws of {width} numbers are too many for {out.suffix}, which is "
            "written in one piece. Choose .npy, .parquet or .csv, which are not."
        )


@contextmanager
def named_writer(out: Path, count: int, parameters: "Parameters", dtype: np.dtype) -> Iterator[Write]:
    """Yield a function that constrains blocks of free coordinates and appends them to the file."""
    from pushforward.cli import writers
    from pushforward.draws.plain_files import structured
    from pushforward.draws.table_files import columns

    def constrained(block: np.ndarray) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            return parameters.constrain(np.ascontiguousarray(block, dtype))

    example = constrained(np.zeros((1, parameters.dim), dtype))
    if out.suffix == ".npy":
        rows: AbstractContextManager[Write] = writers.writer(out, (count,), structured(example).dtype)
        with rows as write:
            yield lambda block: write(structured(constrained(block)))
        return
    names = list(columns(example))
    with writers.writer(out, (count, len(names)), dtype, names) as write:
        yield lambda block: write(np.stack(list(columns(constrained(block)).values()), axis=1))


def find_again(source: Path, spec: str | None, dim: int, data: Path | None, option: str) -> "Target":
    """Return the target that a sampler is of: as named by --target or, of a run, a built-in one."""
    from pushforward.cli.models import read_data
    from pushforward.cli.specs import find_target, is_file
    from pushforward.runs import load_run

    if spec is None and source.is_dir():
        spec = str(load_run(source).about["target"]["spec"])
        if is_file(spec):
            raise CommandError(
                f"{option} needs the target, {spec!r}; a file is run only if you name it: add "
                f"`--target {spec}`."
            )
    if spec is None:
        raise CommandError(
            f"{option} needs the target, since a sampler does not hold its density: add `--target NAME` or "
            "`--target FILE.py:FUNCTION`."
        )
    found = find_target(spec, None if ":" not in spec else dim, read_data(data))
    if found.dim != dim:
        raise CommandError(f"--target has {found.dim} coordinates; the sampler has {dim}.")
    return found


def improve(
    draws: "Draws", target: "Target", key: Any, *, refine: int | None, thin: int | None
) -> "tuple[Draws, str]":
    """Refine and thin, in this order; return the draws and what to say of it."""
    words = []
    if refine is not None:
        draws = draws.refine(key, target, steps=refine)
        found = draws.about["refined"]
        words.append(f"{refine} MALA steps accepted {found['acceptance']:.0%}")
    if thin is not None:
        draws = draws.thin(thin, target)
        words.append(f"thinned to {thin:,}")
    return draws, ", ".join(words)


def whole(sampler: "Sampler", key: Any, num_samples: int, latents: str, *, free: bool) -> "Draws":
    """Return all draws at once; without names if only the free coordinates are wanted."""
    draws = sampler.draws(key, num_samples, latents=latents)
    return type(draws).of(draws.unconstrained, None, draws.about) if free else draws
