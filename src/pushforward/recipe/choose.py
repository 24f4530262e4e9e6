"""Which method was asked for, and what of its recipe is filled in for a target."""

from typing import Any

import numpy as np

from pushforward.base import Target
from pushforward.checks import check_choice
from pushforward.effort import operations
from pushforward.recipe.methods import METHODS, Method, of_settings
from pushforward.recipe.records import plain
from pushforward.recipe.settings import Settings
from pushforward.recipe.table import Recipe


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
    base = method if isinstance(method, Method) else None
    if base is None and asked is not None:
        base = METHODS[check_choice(asked, "method", METHODS)]
    if settings is not None:
        return (base or of_settings(settings)).replace(training=settings)
    if recipe is not None:
        stages = (base or METHODS.get(recipe.training.method) or of_settings(recipe.training)).stages
        return Method(recipe.training.method, stages, recipe)
    return base or METHODS["default"]


def for_target(recipe: Recipe, target: Target) -> Recipe:
    """Return the recipe with what was left open filled in for a target; what is set stays set."""
    work = operations(target)
    return recipe.replace(
        training=_filled(recipe, target.dim, work),
        annealing={"num_particles": recipe.annealing.num_particles or _particles(recipe, target.dim, work)},
    )


def _filled(recipe: Recipe, dim: int, work: float) -> Settings:
    settings, numbers = recipe.training, recipe.open
    kind = settings.network or ("modulated" if dim <= recipe.dims.few else "coupled")
    coupled = kind == "coupled"
    batch_size = next(size for most, size in numbers.batch_sizes if dim <= most)
    # Where each call of the target is much work, batches are smaller.
    affordable = 2 ** int(np.log2(max(numbers.batch_work / work, numbers.least_batch)))
    found: dict[str, Any] = {
        "network": kind,
        "depth": numbers.depth_coupled if coupled else numbers.depth,
        "activation": numbers.activation_coupled if coupled else numbers.activation,
        "learning_rate": numbers.rate_coupled if coupled else numbers.rate,
        "batch_size": min(batch_size, affordable),
    }
    return settings.replace(
        **{name: value for name, value in found.items() if getattr(settings, name) is None}
    )


def _particles(recipe: Recipe, dim: int, work: float) -> int:
    """Return how many particles a target gets: the cost of a round stays level."""
    numbers = recipe.annealing
    wanted = next(count for most, count in numbers.particles if dim <= most)
    return min(wanted, 2 ** int(np.log2(max(numbers.work / work, numbers.least_particles))))


def changes_of(recipe: Recipe) -> dict[str, Any]:
    """Return what a recipe changes of its method's, by the names that `replace` takes, as JSON values."""
    known = METHODS.get(recipe.training.method)
    changes = recipe.changes(Recipe() if known is None else known.recipe)
    return {path.removeprefix("training."): plain(value) for path, value in changes.items()}
