"""A user's own objective, matching, stage, network and latent law are used as they are, from the user's own file."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.latents import Latent, standard
from pushforward.matching.base import Direct, Matching
from pushforward.objectives.base import Objective, Wants, push
from pushforward.recipe import methods
from pushforward.recipe.methods import KL
from pushforward.recipe.stages import Stage
from pushforward.recipe.state import State
from pushforward.targets import Gaussian

pytestmark = pytest.mark.quick_compilation

KEY = jax.random.key(0)
TINY = {"frame": "identity", "width": 4, "depth": 1, "score_width": 4, "score_depth": 1, "num_steps": 20,
        "batch_size": 32, "score_batch_size": 32, "score_steps": 1, "extra_latents": 0,
        "tempering": 1.0, "ema": 0.99}  # fmt: skip


def target():
    return Gaussian([-1.0, 0.5], [[1.5, -0.6], [-0.6, 0.5]])


def fit(method=None, **choices):
    return pf.fit(KEY, target(), method=method, progress=False, **choices)


def loss_of(done):
    return [row["objective"] for row in done.history]


class Towards(Objective):
    """Draws are pulled to a point, which no shipped objective does."""

    point: float

    wants = Wants(fitted="nothing")

    def surrogate(self, key, network, z, view):
        return jnp.mean(jnp.sum((push(network, z) - self.point) ** 2, axis=1))


def test_an_objective():
    done = fit(KL(**TINY | {"num_steps": 400, "learning_rate": 0.03}, objective=Towards(7.0)))
    assert loss_of(done)[-1] < 0.1 * loss_of(done)[0]
    np.testing.assert_allclose(done.sampler.sample(KEY, 500).mean(0), 7.0, atol=1.0)
    # It is told by its class and its fields: two of them make two recipes.
    told = done.recipe.plain()["training"]["objective"]
    assert told == {"class": f"{__name__}.Towards", "point": 7.0}
    assert done.recipe.digest() != done.recipe.replace(objective=Towards(6.0)).digest()
    assert done.recipe.digest() == done.recipe.replace(objective=Towards(7.0)).digest()
    assert done.sampler.about["settings"]["objective"] == told


class Nothing(Matching):
    """A matching that asks for a score net of zeros."""

    weight: float = 1.0

    def loss(self, score, x, key):
        return self.weight * jnp.mean(jnp.sum(jax.vmap(score)(x) ** 2, axis=1))


class Known(Direct):
    """An estimate that needs no net: the score of the normal law with the draws' moments."""

    def fit(self, x):
        mean, covariance = x.mean(0), jnp.cov(x.T) + 1e-3 * jnp.eye(x.shape[1])
        return lambda point: -jnp.linalg.solve(covariance, point - mean)


def test_a_matching():
    done = fit(KL(**TINY | {"num_steps": 100, "score_learning_rate": 0.03}, matching=Nothing(2.0)))
    losses = [row["score_loss"] for row in done.history]
    assert losses[-1] < 0.5 * losses[0]
    assert done.recipe.plain()["training"]["matching"] == {"class": f"{__name__}.Nothing", "weight": 2.0}


def test_a_matching_without_a_net():
    done = fit(KL(**TINY | {"num_steps": 400, "batch_size": 128, "learning_rate": 0.01}, matching=Known()))
    x = np.asarray(done.sampler.sample(KEY, 5_000))
    np.testing.assert_allclose(x.mean(0), [-1.0, 0.5], atol=0.15)
    np.testing.assert_allclose(x.std(0), np.sqrt([1.5, 0.5]), atol=0.2)
    assert "score_loss" not in done.history[0]


class Shifted(eqx.Module):
    """A network that scales and shifts."""

    scale: jax.Array
    shift: jax.Array

    @property
    def in_size(self):
        return self.scale.size

    @property
    def out_size(self):
        return self.scale.size

    def __call__(self, z):
        return self.scale * z + self.shift


def shifted(key, num_latents, dim):
    assert num_latents == dim
    return Shifted(jnp.ones(dim), jax.random.normal(key, (dim,)))


def test_a_network():
    changes = TINY | {"num_steps": 400, "learning_rate": 0.1}
    done = fit(KL(**changes, network=shifted, matching=Known()))
    assert isinstance(done.sampler.network, Shifted)
    np.testing.assert_allclose(done.sampler.network.shift, [-1.0, 0.5], atol=0.2)
    assert done.recipe.plain()["training"]["network"] == f"{__name__}.shifted"


class Coin(Latent):
    """Latents at the corners of a square."""

    size: int = eqx.field(static=True)

    @property
    def dim(self):
        return self.size

    @property
    def num_uniforms(self):
        return self.size

    def sample(self, key, num_samples):
        return self.from_uniform(jax.random.uniform(key, (num_samples, self.size)))

    def from_uniform(self, u):
        return jnp.where(u < 0.5, -1.0, 1.0)

    def log_density(self, z):
        return -self.size * jnp.log(2.0)


def test_a_latent_law():
    done = fit(KL(**TINY, latent=Coin(2), network=shifted))
    assert isinstance(done.sampler.latent, Coin)
    x = np.asarray(done.sampler.sample(KEY, 1_000))
    assert len(np.unique(np.round(x, 3), axis=0)) == 4
    assert done.recipe.plain()["training"]["latent"] == {"class": f"{__name__}.Coin", "size": 2}


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"objective": Towards}, TypeError, r"write `Towards\(\)`"),
        ({"objective": Nothing()}, TypeError, "`surrogate`"),
        ({"matching": Towards(1.0)}, TypeError, "`loss` or `fit`"),
        ({"latent": 3}, TypeError, "`latent` must be one of"),
        ({"network": 3}, TypeError, "`network` must be one of"),
        ({"matching": "slized"}, ValueError, "Did you mean 'sliced'"),
    ],
)
def test_what_is_no_such_part_is_refused(changes, error, words):
    with pytest.raises(error, match=words):
        KL(**changes)


def moments(key, state, recipe, clock):
    """A stage: the normal law with the moments of draws that somebody has found, and no network."""
    clock.observe("moments")
    x = jax.random.normal(key, (512, state.dim)) - 1.0
    law = standard(state.dim)
    law = eqx.tree_at(lambda p: p.means, law, x.mean(0)[None])
    yield state.replace(
        latent=law, draws=x, log_z=0.0, rounds=({"efficiency": 0.5},), notes={"found": len(x)}
    )


def moved(key, state, recipe, clock):
    """A stage that applies where one has been before it."""
    law = eqx.tree_at(lambda p: p.means, state.latent, state.latent.means + recipe.training.width)
    yield state.replace(latent=law)


MOMENTS = Stage("moments", lambda state, recipe: not state.has_sampler, moments)
MOVED = Stage("moved", lambda state, recipe: state.has_sampler, moved)


def test_stages():
    rows = []
    method = methods.Annealed(width=5).replace(stages=(MOVED, MOMENTS, MOMENTS, MOVED))
    done = fit(method, callback=rows.append)
    assert [phase["phase"] for phase in done.phases] == ["moments", "moved"]
    assert done.phases[0]["found"] == 512
    assert [row["stage"] for row in rows] == ["moments", "moved"]
    assert rows[0]["efficiency"] == 0.5
    np.testing.assert_allclose(done.sampler.sample(KEY, 2_000).mean(0), 4.0, atol=0.3)


def test_a_stage_before_the_training():
    method = KL(**TINY | {"frame": "annealed", "latent": "mixture"})
    done = fit(method.replace(stages=(MOMENTS, methods.TRAIN)))
    assert [phase["phase"] for phase in done.phases] == ["moments", "train"]
    np.testing.assert_allclose(done.sampler.latent.means[0], -1.0, atol=0.2)
    assert done.history[-1]["step"] == 20


def test_a_stage_runs_on_its_own():
    recipe = methods.Annealed().recipe
    from pushforward.run.clock import Clock

    (state,) = MOMENTS.run(KEY, State(target=target()), recipe, Clock(recipe))
    assert state.sampler().sample(KEY, 3).shape == (3, 2)


def test_stages_that_make_no_sampler_are_an_error():
    with pytest.raises(ValueError, match="none of its stages made a sampler"):
        fit(methods.Annealed().replace(stages=(MOVED,)))


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_is_a_list_of_stages_and_a_recipe(name):
    method = methods.METHODS[name]
    assert method.name == method.recipe.training.method == name
    assert method.stages
    assert all(isinstance(stage, Stage) for stage in method.stages)
    assert isinstance(method.recipe, pf.Recipe)
    names = [stage.name for stage in method.stages]
    assert len(set(names)) == len(names)
    assert ("train" in names) == (name != "annealed")


def test_the_annealed_stages_are_those_of_the_default_before_the_training():
    default = methods.METHODS["default"].stages
    assert default[: len(methods.ANNEALED)] == methods.METHODS["annealed"].stages == methods.ANNEALED


def test_a_callback_receives_every_row():
    rows = []
    done = fit(KL(**TINY), callback=rows.append)
    assert [row["stage"] for row in rows] == ["train"] * len(done.history)
    assert [{k: v for k, v in row.items() if k != "stage"} for row in rows] == done.history
    assert rows[0].sampler.sample(KEY, 3).shape == (3, 2)
    assert done.outcome is pf.Outcome.FINISHED


@pytest.mark.parametrize("stage", ["moments", "moved", "train"])
def test_a_callback_may_stop_the_fit(stage):
    method = KL(**TINY | {"frame": "annealed", "latent": "mixture"})
    rows = []

    def stop(row):
        rows.append(row)
        return row["stage"] == stage

    done = fit(method.replace(stages=(MOMENTS, MOVED, methods.TRAIN)), callback=stop)
    assert done.outcome is pf.Outcome.STOPPED
    assert [row["stage"] for row in rows].count(stage) == 1
    assert rows[-1]["stage"] == done.phases[-1]["phase"] == stage
    assert done.sampler.sample(KEY, 3).shape == (3, 2)
    # Only `True` stops: what a callback happens to return does not.
    assert fit(KL(**TINY), callback=lambda row: 1).outcome is pf.Outcome.FINISHED


def test_a_callback_that_asks_once_before_there_is_a_sampler_stops_the_fit_at_the_first():
    def looking(key, state, recipe, clock):
        yield state

    stages = (Stage("looking", lambda state, recipe: True, looking), MOMENTS, MOVED, methods.TRAIN)
    method = KL(**TINY | {"frame": "annealed", "latent": "mixture"}).replace(stages=stages)
    done = fit(method, callback=lambda row: row["stage"] == "looking")
    assert done.outcome is pf.Outcome.STOPPED
    assert [phase["phase"] for phase in done.phases] == ["looking", "moments"]
