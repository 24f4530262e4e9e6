"""`pushforward sample mnist`: images of the samplers that come with the package."""

from pathlib import Path

from pushforward.cli.console import note, size
from pushforward.cli.errors import CommandError

SUFFIXES = (".png", ".npy", ".npz")
MOST = 10_000  # images in one picture; more of them belong into an array


def sample_images(name: str, num_samples: int, out: Path, *, seed: int, force: bool, quiet: bool) -> None:
    """Write a picture of all images side by side, or an array of bytes `(n, height, width)`."""
    if out.suffix not in SUFFIXES:
        raise CommandError(f"--out must end in {', '.join(SUFFIXES)} for images; got {out}.")
    if out.exists() and not force:
        raise CommandError(f"{out} exists. Choose another name, or overwrite it with --force.")
    if not out.parent.is_dir():
        raise CommandError(f"there is no folder {out.parent} to write {out.name} to. Make it first.")
    if out.suffix == ".png" and num_samples > MOST:
        raise CommandError(
            f"a picture holds at most {MOST:,} images; got {num_samples:,}. Write an .npy file."
        )
    import io

    import jax
    import numpy as np

    from pushforward.atomic import write_atomically
    from reproduce import pretrained

    images = pretrained.draw(jax.random.key(seed), pretrained.named(name), num_samples)
    buffer = io.BytesIO()
    if out.suffix == ".png":
        from matplotlib.image import imsave

        imsave(buffer, pretrained.grid(images), cmap="gray", vmin=0, vmax=255, format="png")
    elif out.suffix == ".npy":
        np.save(buffer, images)
    else:
        np.savez_compressed(buffer, images=images)
    write_atomically(out, buffer.getvalue())
    if not quiet:
        height, width = images.shape[1:]
        note(f"{num_samples:,} images of {height} x {width} pixels in {out} ({size(out.stat().st_size)}).")
