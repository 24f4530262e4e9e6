"""Proposals that learn from their own weighted draws know mode weights, bends and log Z; or say that they do not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.host import normal_logs, sampled
from pushforward.latents import NormalMixture, standard
from pushforward.recipe import adapt, methods, path_laplace, search
from pushforward.recipe.peaks import Peaks
from pushforward.recipe.state import State
from pushforward.recipe.table import Recipe, Search
from pushforward.run.clock import Clock
from pushforward.run.driver import Driver
from pushforward.targets import Mixture, banana
from pushforward.weights import log_sum

pytestmark = pytest.mark.quick_compilation

RECIPE = Recipe(search=Search(num_walks=64, looks=2**12)).replace(annealing={"num_particles": 1024})
CLOCK = Clock(RECIPE)
WEIGHTS = np.array([0.8, 0.2])


def before(target, seed=0):
    """The state after the search, in which there are peaks and no draws."""
    state = State(target=target)
    for stage in (search, path_laplace):
        *_, state = stage.run(jax.random.key(seed), state, RECIPE, CLOCK)
    return state.replace(draws=None, latent=None, good=False, rounds=())


def adapted(state, seed=1, recipe=RECIPE):
    return list(adapt.run(jax.random.key(seed), state, recipe, CLOCK))


@pytest.fixture(scope="module")
def two():
    """Two normals of unequal weight and unlike shape, twelve deviations apart in four dimensions."""
    means = 100.0 + np.array([[0.0, 0.0, 0.0, 0.0], [6.0, 6.0, -6.0, 6.0]])
    return Mixture(WEIGHTS, means, [np.eye(4) + 0.5, 0.25 * np.eye(4)])


@pytest.fixture(scope="module")
def of_two(two):
    (state,) = adapted(before(two))
    return state


@pytest.fixture(scope="module")
def of_banana():
    (state,) = adapted(before(banana()))
    return state


def share(two, x):
    """The share of draws of the first normal: the second is nowhere within half the way."""
    away = np.linalg.norm(np.asarray(x)[:, None] - np.asarray(two.means), axis=2)
    return np.mean(away[:, 0] < away[:, 1])


def test_two_normals_have_their_weights_and_their_log_z(two, of_two):
    assert of_two.good
    assert of_two.efficiency > 0.9
    # By 8,192 effective draws, a hundredth.
    assert of_two.log_z == pytest.approx(0.0, abs=0.05)
    draws = jax.vmap(of_two.frame)(of_two.draws)
    assert share(two, draws) == pytest.approx(WEIGHTS[0], abs=0.02)
    assert share(two, of_two.sampler().sample(jax.random.key(2), 50_000)) == pytest.approx(
        WEIGHTS[0], abs=0.02
    )


def test_a_banana_is_bent_as_it_should_be(of_banana):
    target = banana()
    assert of_banana.good
    assert of_banana.efficiency > 0.7
    assert of_banana.log_z == pytest.approx(float(target.log_z), abs=0.05)
    x = np.asarray(of_banana.sampler().sample(jax.random.key(2), 50_000))
    # Straightened, it is the normal law that was bent.
    u = np.asarray(jax.vmap(target.unwarp)(jnp.asarray(x))) / np.sqrt(np.diag(target.base.covariance))
    np.testing.assert_allclose(u.mean(0), 0.0, atol=0.05)
    np.testing.assert_allclose(u.std(0), 1.0, atol=0.05)


@pytest.mark.parametrize("name", ["of_two", "of_banana"])
def test_no_draw_is_both_learnt_from_and_judged_by(name, request):
    draws = np.asarray(request.getfixturevalue(name).draws)
    assert len(draws) == RECIPE.adapt.num_kept
    learnt, judged = (set(map(bytes, part)) for part in np.split(draws, [-len(draws) // 4]))
    # Many a draw is there twice, but on one side.
    assert min(len(learnt), len(judged)) > 500
    assert not learnt & judged


def test_the_parts_that_mixtures_are_fitted_to_and_judged_by_are_these():
    rng, x = np.random.default_rng(0), np.arange(20_000.0)[:, None]
    kept, part = adapt._kept(rng, x, -1e-4 * x[:, 0], RECIPE.adapt)
    learnt, judged = part(kept)
    assert len(learnt) == 3 * len(judged) == 0.75 * RECIPE.adapt.num_kept
    np.testing.assert_array_equal(np.concatenate([learnt, judged]), kept)
    assert not set(learnt[:, 0]) & set(judged[:, 0])
    # Weights are those of the exponential law, cut off at two of its means.
    for rows in (learnt, judged):
        assert rows.mean() == pytest.approx(1e4 * (1 - 2 / np.expm1(2.0)), rel=0.03)


def test_draws_of_all_rounds_weigh_against_all_proposals():
    """The second proposal alone lacks half of the mass, the first is far too wide: together they know it all."""
    rng, pool = np.random.default_rng(0), adapt.Pool(RECIPE.adapt, 2)
    law = standard(2)
    for width in (5.0, 0.5):
        wide = NormalMixture(law.weights, law.means, width * law.choleskys)
        u = pool.propose(rng, wide)
        pool.add(u, -0.5 * np.sum(u**2, axis=1))
    w = pool.log_weights
    assert log_sum(w) - np.log(len(w)) == pytest.approx(np.log(2 * np.pi), abs=0.03)
    share = np.exp(w - w.max())
    np.testing.assert_allclose(share / share.sum() @ pool.draws**2, 1.0, atol=0.08)
    # Its t law, not the normal one: proposals must have heavier tails than targets.
    own = log_sum(normal_logs(pool.draws, *pool.laws[1], freedom=RECIPE.adapt.freedom))
    np.testing.assert_allclose(pool.logs[:, 1], own)


def shell():
    """A thin shell in ten dimensions, which no few normals cover."""
    return Target.from_log_density(lambda x: -0.5 * ((jnp.linalg.norm(x) - 3.0) / 0.003) ** 2, dim=10)


def test_weights_that_stay_unequal_leave_the_state_as_it_was():
    peaks = Peaks(3.0 * np.eye(10), np.stack([0.1 * np.eye(10)] * 10), np.zeros(10))
    state = State(target=shell(), peaks=peaks)
    recipe = RECIPE.replace(adapt={"rounds": 3, "num_draws": 1024})
    assert adapt.applies(state, recipe)
    assert adapted(state, recipe=recipe) == []
    # So particles begin where they would have begun.
    assert methods.ANNEAL.applies(state, recipe)


def test_a_target_that_is_nowhere_leaves_the_state_as_it_was():
    nowhere = Target.from_log_density(lambda x: jnp.where(x[0] > 1e6, 0.0, -jnp.inf), dim=2)
    peaks = Peaks(np.zeros((1, 2)), np.eye(2)[None], np.zeros(1))
    assert adapted(State(target=nowhere, peaks=peaks)) == []


def test_the_stage_is_for_few_coordinates_and_for_what_is_not_good_yet(two):
    state = State(target=two, peaks=Peaks(np.zeros((1, 4)), np.eye(4)[None], np.zeros(1)))
    assert adapt.applies(state, RECIPE)
    assert not adapt.applies(state, RECIPE.replace(adapt={"most_dim": 3}))
    assert not adapt.applies(state.replace(good=True), RECIPE)
    assert not adapt.applies(state.replace(peaks=None), RECIPE)


def test_the_same_key_gives_the_same_law_and_another_key_another(two, of_two):
    draws = [adapted(before(two), seed)[0].draws for seed in (1, 2)]
    np.testing.assert_array_equal(draws[0], of_two.draws)
    assert not np.array_equal(draws[1], of_two.draws)


def test_the_driver_goes_on_to_particles_only_where_weights_stay_unequal(two):
    method = methods.Annealed(**{"annealing.num_particles": 512, "annealing.most_rounds": 1})
    recipe = method.recipe.replace(search={"num_walks": 64, "looks": 2**12}, maps={"rounds": 0})
    for enough, wanted in ((1500.0, ["adapt"]), (1e9, ["adapt", "anneal"])):
        hard = recipe.replace(adapt={"enough": enough})
        driver = Driver(jax.random.key(0), before(two), hard, Clock(hard))
        driver.run((methods.ADAPT, methods.ANNEAL))
        assert [phase["phase"] for phase in driver.phases] == wanted
        assert sampled(np.random.default_rng(0), driver.state.latent, 5).shape == (5, 4)
