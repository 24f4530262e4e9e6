"""Every method: a list of stages and a recipe, by name or made with some choices changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from pushforward.base import Target
from pushforward.checks import check_choice
from pushforward.frozen import plain
from pushforward.operations import operations
from pushforward.recipe import adapt, anneal, fallback, maps, path_laplace, residual, reweight, search, train
from pushforward.recipe.settings import Settings
from pushforward.recipe.stages import Stage
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe


def _annealed(state: State, recipe: Recipe) -> bool:
    return recipe.training.frame == "annealed" and not state.has_sampler


SEARCH = Stage("search", _annealed, search.run)
PATH = Stage("path", path_laplace.applies, path_laplace.run)
ADAPT = Stage("adapt", adapt.applies, adapt.run)
ANNEAL = Stage("anneal", anneal.applies, anneal.run)
MAPS = Stage("maps", maps.applies, maps.run)
RESIDUAL = Stage("residual", residual.applies, residual.run)
TRAIN = Stage("train", train.applies, train.run, together=True)
REWEIGHT = Stage("reweight", reweight.applies, reweight.run, together=True)
FALLBACK = Stage("fallback", fallback.applies, fallback.run, together=True)

ANNEALED = (SEARCH, PATH, ADAPT, ANNEAL, RESIDUAL, MAPS)
"""Stages that find draws, a frame and a mixture; they are a sampler without a network."""

TRAINED = (*ANNEALED, TRAIN, REWEIGHT)
JUDGED = (*TRAINED, FALLBACK)


@dataclass(frozen=True)
class Method:
    """A list of stages and the recipe that they follow."""

    name: str
    stages: tuple[Stage, ...]
    recipe: Recipe

    def replace(self, *, stages: tuple[Stage, ...] | None = None, **changes: Any) -> "Method":
        """Return a copy with other stages, or some fields of the recipe changed."""
        recipe = self.recipe.replace(**changes) if changes else self.recipe
        return Method(self.name, self.stages if stages is None else tuple(stages), recipe)


# A sampler need not be one-to-one: latents to spare let it close the hole of a ring. Many steps at a rate
# that falls far, since the noise of the score net moves mass along a ridge, where nothing pulls it back.
_FREE = {"extra_latents": 6, "num_steps": 4000, "score_batch_size": 256, "final_rate": 0.003, "ema": 0.995}

# A map that starts as the identity on a mixture fitted to the annealed draws.
_FROM_MIXTURE = {"latent": "mixture", "network": "modulated", "activation": "squareplus"}

_CHOICES: dict[str, dict[str, Any]] = {
    "default": {
        # A free map folds while it learns, and at a fold its score is infinite [funnel_10].
        "latent": "mixture", "network": "coupled", "depth": 2, "objective": "exact_kl", "matching": "none",
        "num_steps": 600, "learning_rate": 2e-3, "final_rate": 0.02, "beta1": 0.9, "ema": 0.98,
        "forward_weight": 0.3, "judged": True,
        # Open: what suits the dimension and the cost of the target.
        "batch_size": None,
    },
    # Tempered for most of the training: modes share their mass while they touch, and later nothing pulls it
    # back. The score net is not averaged: an old score lets a sampler that moves fast fold.
    "kl": {
        "extra_latents": 6, "num_steps": 7000, "beta1": 0.9, "ema": 0.998, "score_steps": 3, "score_ema": 0.0,
        "score_batch_size": 256, "score_learning_rate": 3e-3, "tempering": 0.05, "tempering_until": 0.75,
    },
    # Steps thirty times smaller than KL's: the divergence of the score net, not its value, drives Fisher,
    # and a sampler that outruns its score net contracts.
    "fisher": {
        **_FROM_MIXTURE, "objective": "fisher", "num_steps": 500, "learning_rate": 3e-5,
        "score_learning_rate": 3e-4, "score_ema": 0.98, "batch_size": 1024, "score_batch_size": 1024,
    },
    "combined": {**_FREE, "objective": "combined", "learning_rate": 5e-4, "score_steps": 6},
    "fisher_stein": {**_FREE, "objective": "fisher_stein", "learning_rate": 2e-4},
    "kernel": {**_FREE, "matching": "kernel", "batch_size": 256},
    "ksd": {**_FREE, "objective": "ksd", "matching": "none"},
    "steingan": {**_FREE, "objective": "steingan", "matching": "none"},
}  # fmt: skip


def preset(method: str = "default", **changes: Any) -> Settings:
    """Return the settings of a method, with some of them changed."""
    choices = _CHOICES[check_choice(method, "method", _CHOICES)]
    return Settings(method=method, **choices).replace(**changes)


def of_settings(settings: Settings) -> Method:
    """Return the method of some settings."""
    stages = JUDGED if settings.judged else TRAINED
    return Method(settings.method, stages, Recipe(training=settings))


class _Methods(Mapping[str, Method]):
    """All methods by name; each is made when it is asked for, so that a fit loads the parts of one alone."""

    def __getitem__(self, name: str) -> Method:
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*_CHOICES, "annealed"))

    def __len__(self) -> int:
        return len(_CHOICES) + 1


@cache
def _made(name: str) -> Method:
    if name == "annealed":
        return Method(name, ANNEALED, Recipe(training=preset("default").replace(method=name)))
    if name not in _CHOICES:
        raise KeyError(name)
    return of_settings(preset(name))


METHODS = _Methods()


def make(name: str, **changes: Any) -> Method:
    """Return a method with some fields of its recipe changed."""
    return METHODS[check_choice(name, "method", METHODS)].replace(**changes)


Default, Annealed = partial(make, "default"), partial(make, "annealed")
KL, Fisher, Combined = partial(make, "kl"), partial(make, "fisher"), partial(make, "combined")
FisherStein, Kernel = partial(make, "fisher_stein"), partial(make, "kernel")
KSD, SteinGAN = partial(make, "ksd"), partial(make, "steingan")


def method_of(method: str | Method | None, settings: Settings | None, recipe: Recipe | None) -> Method:
    """Return the one of three that was given as a method: its stages and recipe."""
    for value, kind, name, remedy in (
        (method, str | Method, "method", "a name such as 'kl', or `methods.KL(width=128)`"),
        (settings, Settings, "settings", "Settings, such as `preset('kl', width=128)`"),
        (recipe, Recipe, "recipe", "a Recipe, such as `methods.KL().recipe`"),
    ):
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"`{name}` must be {remedy}; got {type(value).__name__}.")
    asked = method.name if isinstance(method, Method) else method
    for value, name in ((settings, "settings"), (None if recipe is None else recipe.training, "recipe")):
        if value is not None and asked is not None and asked != value.method:
            raise ValueError(
                f"`method` is {asked!r} but `{name}` are those of {value.method!r}. Give one of the two; "
                f"`preset({asked!r}, ...)` makes settings of a method."
            )
    if settings is not None and recipe is not None:
        raise ValueError(
            "`settings` and `recipe` were both given: `recipe.training` are its settings. Give one."
        )
    base = METHODS[check_choice(method, "method", METHODS)] if isinstance(method, str) else method
    training = settings if recipe is None else recipe.training
    if training is None:
        return base or METHODS["default"]
    base = base or METHODS.get(training.method) or of_settings(training)
    return base.replace(training=settings) if recipe is None else Method(training.method, base.stages, recipe)


def for_target(recipe: Recipe, target: Target) -> Recipe:
    """Return the recipe with what was left open filled in for a target; what is set stays set."""
    few, many, work = recipe.open, recipe.annealing, operations(target)
    size = _level(few.batch_sizes, target.dim, few.batch_work / work, few.least_batch)
    count = _level(many.particles, target.dim, many.work / work, many.least_particles)
    return recipe.replace(
        training={"batch_size": recipe.training.batch_size or size},
        annealing={"num_particles": recipe.annealing.num_particles or count},
    )


def _level(table: tuple[tuple[int, int], ...], dim: int, affordable: float, least: int) -> int:
    """Return how many points are looked at together in so many dimensions: fewer where each is much work."""
    wanted = next(count for most, count in table if dim <= most)
    return min(wanted, 2 ** int(np.log2(max(affordable, least))))


def changes_of(recipe: Recipe) -> dict[str, Any]:
    """Return what a recipe changes of its method's, by the names that `replace` takes, as JSON values."""
    known = METHODS.get(recipe.training.method)
    changes = recipe.changes(Recipe() if known is None else known.recipe)
    return {path.removeprefix("training."): plain(value) for path, value in changes.items()}
