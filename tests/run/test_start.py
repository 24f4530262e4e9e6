"""A fit may begin at the state of another of the same target: what that has found is not sought again."""

import jax
import numpy as np
import pytest
from quick import quick

import pushforward as pf
from pushforward.recipe import methods

pytestmark = pytest.mark.quick_compilation

KEY = jax.random.key(0)
FEW = {"adapt.most_dim": 1, "annealing.num_particles": 128, "necks.most": 0, "width": 4, "batch_size": 32, "num_steps": 2, "reweight.num_draws": 512,
       "reweight.marginal_steps": 2, "fallback.most_dim": 1, "maps.rounds": 1, "maps.steps_first": 2,
       "maps.steps_to_choose": 2, "maps.batch_size": 32, "annealing.most_rounds": 1}  # fmt: skip


@pytest.mark.parametrize("name", ["default", "annealed"])
def test_stages_before_the_training_are_not_run_again(name):
    """In five dimensions, where what is found is not good enough."""
    target = pf.targets.funnel_nd(5)
    first = pf.fit(KEY, target, method=quick(name, **FEW), progress=False, throw=False)
    again = pf.fit(KEY, target, method=quick(**FEW), start=first.state, progress=False, throw=False)
    assert [phase["phase"] for phase in again.phases] == ["train", "reweight"]
    if name == "default":
        np.testing.assert_array_equal(again.sampler.latent.means, first.sampler.latent.means)
    kl = methods.KL(latent="mixture", extra_latents=0, network="modulated", width=4, num_steps=2)
    other = pf.fit(KEY, target, method=kl, start=first.state, progress=False, throw=False)
    assert [phase["phase"] for phase in other.phases] == ["train"]
