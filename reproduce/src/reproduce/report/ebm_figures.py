"""The figures of the study of digits: grids of draws, a filmstrip of training, quality against time."""

import numpy as np

from reproduce.report.cells import Cells
from reproduce.report.drawing import drawn, legend, subplots
from reproduce.report.section import Figure

SIDE = 6  # images across and down in each grid

TITLES = {
    "data": "test images",
    "kl": "KL sampler, one pass",
    "fisher": "Fisher sampler",
    "kl-plain": "paper's loop",
    "start": "the samplers' start",
}


def grid_figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return grids of draws: the energy's by number of evaluations beside the samplers'."""
    names = [name.split("/")[1] for name in arrays if name.startswith("grid/")]
    if not names:
        return None
    rows = sorted((n for n in names if n.startswith("langevin-")), key=lambda n: int(n.split("-")[1]))
    order = [*rows, *(n for n in ("start", "kl", "fisher", "kl-plain", "data") if n in names)]
    across = min(len(order), 3)
    down = -(-len(order) // across)
    figure, axes = subplots(down, across, (3.1 * across, 3.3 * down), boxed=True)
    for place, axis in enumerate(axis for row in axes for axis in row):
        axis.axis("off")
        if place < len(order):
            name = order[place]
            axis.imshow(tiled(arrays[f"grid/{name}"][: SIDE * SIDE], SIDE), cmap="gray", vmin=0, vmax=255)
            words = f"energy, {name.split('-')[1]} evaluations" if name in rows else TITLES.get(name, name)
            axis.set_title(words, fontsize=10)
    return drawn(figure, "ebm_grids.png", "Draws of the energy and of the one-shot samplers", dpi=100)


def film_figure(arrays: dict[str, np.ndarray]) -> Figure | None:
    """Return what the same ten latents become while the KL sampler trains, its start before it."""
    shown = [*_frames(arrays, "start", 5), *_frames(arrays, "kl", 5)]
    if not shown:
        return None
    figure, [[axis]] = subplots(1, 1, (7.0, 0.7 * len(shown)), boxed=True)
    axis.imshow(
        np.concatenate([tiled(arrays[n], arrays[n].shape[0]) for n in shown]), cmap="gray", vmin=0, vmax=255
    )
    height = arrays[shown[0]].shape[1]
    axis.set_yticks(
        [height * (i + 0.5) for i in range(len(shown))],
        [f"{n.split('/')[1]}, {int(n.split('/')[2]):,}" for n in shown],
    )
    axis.set_xticks([])
    axis.set_ylabel("stage, steps")
    return drawn(figure, "ebm_film.png", "Ten latents while the KL sampler trains", dpi=100)


def _frames(arrays: dict[str, np.ndarray], method: str, most: int) -> list[str]:
    """Return the names of a film's frames, at most so many, the first and the last among them."""
    names = sorted(name for name in arrays if name.startswith(f"film/{method}/"))
    chosen = np.linspace(0, len(names) - 1, most).round().astype(int) if names else []
    return [names[i] for i in np.unique(chosen).astype(int)]


def speed_figure(cells: Cells, target: str) -> Figure | None:
    """Return FID against seconds per image."""
    points = []
    for method in cells.methods("fid"):
        # The samplers share one architecture, of which one was timed.
        timed = method if method.startswith("langevin-") else "kl"
        seconds, fid = cells.get("seconds_per_image", timed, target), cells.get("fid", method, target)
        same = cells.get("fid_as_rows", method, target)
        if seconds is not None and fid is not None:
            points.append((method, seconds.value, (same or fid).value))
    if not points:
        return None
    figure, [[axis]] = subplots(1, 1, (5.6, 3.6))
    chains = [p for p in points if p[0].startswith("langevin-")]
    axis.plot(
        [p[1] for p in chains], [p[2] for p in chains], color="#e69f00", marker="o", label="annealed Langevin"
    )
    for method, seconds, fid in chains:
        axis.annotate(
            method.split("-")[1], (seconds, fid), fontsize=8, xytext=(0, 5), textcoords="offset points"
        )
    colours = {"kl": "#0072b2", "fisher": "#009e73", "kl-plain": "#d55e00"}
    for method, seconds, fid in points:
        if not method.startswith("langevin-"):
            axis.plot([seconds], [fid], ls="", marker="s", color=colours.get(method, "#444444"), label=method)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("seconds per image")
    axis.set_ylabel("FID")
    legend(axis)
    return drawn(figure, "ebm_speed.svg", "Quality against time")


def tiled(images: np.ndarray, across: int) -> np.ndarray:
    """Return images side by side as one."""
    down, (height, width) = len(images) // across, images.shape[1:]
    parts = images[: down * across].reshape(down, across, height, width)
    return parts.swapaxes(1, 2).reshape(down * height, across * width)
