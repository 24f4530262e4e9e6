"""What a preset would do: its rows, and the exact sizes of its networks, without training any."""

import jax
import jax.numpy as jnp

from pushforward import methods
from pushforward.recipe.state import State, standard
from pushforward.recipe.train import parts_of
from pushforward.targets import get
from reproduce.studies.fitting import size_of
from reproduce.studies.row import counted
from reproduce.studies.two_d.recipes import recipe
from reproduce.studies.two_d.run import rows
from reproduce.studies.two_d.settings import NEURAL, PAPERS, PLAIN, Settings


def plan(settings: Settings) -> list[str]:
    """Return lines for a reader: rows, then parameters of every network."""
    todo = rows(settings)
    lines = [f"{len(todo)} rows on {len({row.target for row in todo})} targets", *counted(todo)]
    trained = [m for m in ("default", *PAPERS, *NEURAL, *PLAIN) if m in settings.methods]
    for method in trained:
        sampler, score = parameters(method, settings)
        words = f"{method}: {sampler:,} parameters in the sampler"
        lines.append(words + (f", {score:,} in the score net" if score else ""))
    return lines


def parameters(method: str, settings: Settings) -> tuple[int, int]:
    """Return the exact parameter counts of a method's sampler and score net."""
    target = get("gaussian")
    if method == "flow":
        from reproduce.rivals import flow

        return size_of(flow.algorithm(target, width=settings.flow_width).init(jax.random.key(0)).trained), 0
    # Shapes alone matter here, so that any mixture and any draws will do.
    found = State(target=target, latent=standard(target.dim), draws=jnp.zeros((2, target.dim)))
    filled = methods.for_target(recipe(method, settings).recipe, target)
    parts = parts_of(jax.random.key(0), found, filled.training)
    # A score that corrects a mixture holds the mixture too; what is trained is its net.
    return size_of(parts.network), size_of(getattr(parts.score_net, "net", parts.score_net))
