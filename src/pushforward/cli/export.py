"""`pushforward export`: a sampler as an ONNX file."""

from pathlib import Path
from typing import Annotated

import typer

from pushforward.cli.console import note, size
from pushforward.cli.errors import CommandError
from pushforward.cli.options import Source, load_sampler


def export(
    source: Source,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File to write: .onnx.", show_default=False)
    ],
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
) -> None:
    """Write a sampler's map from latents to draws as ONNX, which needs neither JAX nor Python to run.

    The law of the latents and the sampler's story are in the file's metadata.

    [bold]Examples[/bold]

      pushforward export runs/rosenbrock --out rosenbrock.onnx
    """
    if out.exists() and not force:
        raise CommandError(f"--out must be a new file; {out} exists. Add --force to overwrite it.")
    load_sampler(source).export(out)
    note(f"wrote {out} ({size(out.stat().st_size)}).")
