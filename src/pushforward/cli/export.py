"""`pushforward export`: a sampler as an ONNX file."""

from pushforward.cli import options
from pushforward.cli.console import note, size
from pushforward.cli.errors import CommandError
from pushforward.cli.sources import load_sampler


def export(source: options.Source, out: options.Out, force: options.Force = False) -> None:
    """Write a sampler's map from latents to draws as ONNX, which needs neither JAX nor Python to run.

    The law of the latents and the sampler's story are in the file's metadata.

    [bold]Examples[/bold]
      pushforward export runs/rosenbrock --out rosenbrock.onnx
    """
    if out.exists() and not force:
        raise CommandError(f"--out must be a new file; {out} exists. Add --force to overwrite it.")
    load_sampler(source).export(out)
    note(f"wrote {out} ({size(out.stat().st_size)}).")
