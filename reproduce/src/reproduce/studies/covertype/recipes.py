"""What each method of the paper is here: its settings as printed, and settings that work."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax

from pushforward import Settings as Training
from pushforward.base import Algorithm, Target
from pushforward.frame import InFrame
from pushforward.recipe.parts import build_parts
from pushforward.training import alternating
from reproduce.studies.covertype.settings import Settings

PAPER_ROWS = 500
"""Data rows per score of the network methods."""

CHAIN_ROWS = 100
"""And of SGLD, SVGD and DSVI: three epochs are 13,944 iterations of so many."""

FRAME_ROWS = 500


class Method(NamedTuple):
    """How a method is run: an algorithm of a target, rows a step, steps, and a limit of seconds."""

    build: Callable[[Target], Algorithm]
    rows: int
    steps: int
    seconds: float
    framed: bool = False
    """In the Laplace frame, on minibatches of the expanded posterior."""
    fixed: bool = False
    """It has so many draws and no more."""


def paper_recipe(method: str, settings: Settings) -> Training:
    """Return the paper's network training: four linear maps of 1,024 units, GELU, 550 latents.

    Adam at 2e-4 without a schedule, batches of 100, two score steps, no frame. `clip` is out of reach.
    """
    return Training(
        method=method, frame="identity", latent="normal", latent_dim=settings.paper_latents,
        width=settings.paper_width, depth=3, activation="gelu", skip=False,
        matching="none" if method == "steingan" else "exact", score_width=settings.paper_width,
        score_depth=3, score_activation="gelu", score_steps=2, score_batch_size=100, score_ema=0.0,
        objective=method, num_steps=settings.paper_steps, batch_size=100, learning_rate=2e-4,
        score_learning_rate=2e-4, beta1=0.9, final_rate=1.0, clip=1e12, ema=0.0,
    )  # fmt: skip


def method_of(name: str, settings: Settings, num_rows: int) -> Method:
    """Return how a method of that name is run under these settings."""
    from reproduce.rivals import dsvi, sgld, svgd

    s, draws = settings, settings.predictive_draws
    never = float("inf")
    training = eqx.Partial(_training, name=name.removesuffix("-frame"), settings=settings)
    chain = {"num_kept": draws, "initial_scale": 0.1}
    # In the frame the step is a share of the posterior's width, and every so many iterates one is kept.
    spaced = {"step_size": 0.05, "decay": 0.0, "num_kept": draws, "keep_every": 50, "initial_scale": 1.0}
    walk, mean = partial(eqx.Partial, sgld.algorithm), 0.1 / num_rows
    particles = eqx.Partial(svgd.algorithm, num_particles=draws, step_size=0.05, initial_scale=1.0)
    normal = eqx.Partial(dsvi.algorithm, learning_rate=0.05, initial_scale=0.5, num_draws=16)
    table: dict[str, tuple[Any, ...]] = {
        "kl": (training, PAPER_ROWS, s.paper_steps, s.paper_seconds),
        "fisher": (training, PAPER_ROWS, s.paper_steps, s.paper_seconds),
        "steingan": (training, PAPER_ROWS, s.paper_steps, s.kernel_seconds),
        "steingan-frame": (training, FRAME_ROWS, s.frame_steps, s.kernel_seconds, True),
        "svgd": (particles, CHAIN_ROWS, s.svgd_steps, never, False, True),
        "svgd-frame": (particles, FRAME_ROWS, s.frame_steps, never, True, True),
        "sgld": (walk(**chain), CHAIN_ROWS, s.chain_steps, never, False, True),
        # The paper's 0.1 read as a step for the mean over the rows.
        "sgld-scaled": (walk(step_size=mean, **chain), CHAIN_ROWS, s.chain_steps, never, False, True),
        "sgld-frame": (walk(**spaced), FRAME_ROWS, 2 * s.frame_steps, never, True, True),
        "dsvi": (eqx.Partial(dsvi.algorithm), CHAIN_ROWS, s.dsvi_steps, never),
        "dsvi-frame": (normal, FRAME_ROWS, s.frame_steps, never, True),
    }  # fmt: skip
    return Method(*table[name])


def _training(target: Target, *, name: str, settings: Settings) -> Algorithm:
    """Return the training of a network, in the target's coordinates or in those of its frame."""
    recipe = paper_recipe(name, settings)
    if isinstance(target, InFrame):
        # A small network with a skip starts as the Laplace approximation, which a random one would forget.
        recipe = recipe.replace(
            latent_dim=target.dim, width=64, activation="silu", skip=True, learning_rate=5e-4,
            final_rate=0.02, ema=0.99, num_steps=settings.frame_steps,
        )  # fmt: skip
    return alternating(build_parts(jax.random.key(0), target, recipe))
