"""A few rows of the study, with a small recipe and a sampler that an earlier run has left."""

import json

import jax
import jax.numpy as jnp
import pytest

from pushforward.frame import Frame
from pushforward.latents import NormalMixture
from pushforward.networks import modulated
from pushforward.sampler import Sampler
from reproduce import records
from reproduce.records import Header
from reproduce.studies import hard
from reproduce.studies.hard.settings import case
from reproduce.studies.row import Row
from reproduce.studies.store import Store

METHODS = ("default", "smc", "mixture", "nuts", "flow", "steps")
ABOUT = {
    "outcome": "FINISHED",
    "phases": [{"phase": "anneal", "seconds": 0.1}],
    "metrics": {"efficiency": 0.5},
}
SMALL = {"annealing.num_particles": 512, "annealing.most_rounds": 1, "search.looks": 2**8, "maps.good": 0.0,
         "width": 4, "depth": 1, "batch_size": 16}  # fmt: skip
"""Changes of a recipe: nothing here looks at quality."""


def stand_in(target):
    """A normal with the target's moments, as a sampler whose map is the identity."""
    x = target.sample(jax.random.key(9), 2000)
    dim = target.dim
    zero, one = jnp.zeros(dim), jnp.ones(dim)
    frame = Frame(centre=x.mean(0), scale=x.std(0), bend=zero, shift=zero, matrix=jnp.eye(dim))
    latent = NormalMixture(jnp.ones(1), zero[None], jnp.diag(one)[None])
    return Sampler(latent, modulated(jax.random.key(0), dim, width=4, depth=1), frame, json.dumps(ABOUT))


@pytest.fixture(scope="session")
def hard_folder(tmp_path_factory):
    """A few rows of the smoke preset, run once; the fits of `default` are kept by a run that was stopped."""
    folder = tmp_path_factory.mktemp("hard")
    settings = hard.PRESETS["smoke"].replace(
        targets=("gmm40", "random_05"),
        methods=METHODS,
        step_dims=(2,),
        most_rival_seconds=0.2,
        recipe_changes=SMALL,
    )
    command = "pushforward study hard --preset smoke"
    records.write(folder / "hard.jsonl", Header.of_this_machine("hard", "smoke", 0, command))
    for name in settings.targets:
        kept = stand_in(case(name).build())
        row = Row("default", name, 0)
        Store(folder, "hard").keep(row, settings.how("default"), kept, {"study_seconds": 0.2})
    hard.run(settings, folder, command=command)
    return folder, settings
