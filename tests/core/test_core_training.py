"""Training mechanics on tiny settings: what each step does, what is skipped, and every way to end."""

import dataclasses
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pushforward as pf
from pushforward.frame import Frame
from pushforward.latents import Normal, NormalMixture
from pushforward.matching import Critic
from pushforward.networks import modulated
from pushforward.objectives import Objective
from pushforward.recipe.parts import build_objective, build_parts
from pushforward.targets import Gaussian
from pushforward.training import Parts, alternating, averaged, run

KEY = jax.random.key(17)
TINY = {
    "frame": "identity", "width": 8, "depth": 1, "score_width": 8, "score_depth": 1, "num_steps": 20,
    "batch_size": 32, "score_batch_size": 32, "score_steps": 2,
}  # fmt: skip


pytestmark = pytest.mark.quick_compilation


def asymmetric():
    return Gaussian([-1.0, 0.5], [[1.5, -0.6], [-0.6, 0.5]])


def all_finite(tree):
    return all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf))


def same(a, b):
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(x, y) for x, y in leaves if eqx.is_array(x))


def tiny(**changes):
    # Not from a preset, so that the recipes may change and these tests need not.
    return pf.Settings(method="tiny", **TINY | changes)


def parts_for(**changes):
    return build_parts(KEY, asymmetric(), tiny(**changes), mixture=None, draws=None)


def run_parts(parts, log_every=10, **options):
    algorithm = alternating(parts)
    return run(KEY, algorithm, algorithm.init(KEY), num_steps=parts.num_steps, log_every=log_every, **options)


# A world small enough to follow by hand: parameters that move by the learning rate each step.


class Slide(eqx.Module):
    """A network with one parameter."""

    m: jax.Array

    def __call__(self, z):
        return z + self.m


class Downhill(Objective):
    """A slope of one in every parameter, not a number on the given steps."""

    broken: tuple[int, ...] = eqx.field(static=True, default=())

    def surrogate(self, key, network, z, view):
        step = jnp.round(view.progress * 20)
        bad = jnp.any(jnp.isin(step, jnp.asarray(self.broken, float))) if self.broken else False
        return jnp.sum(network.m) * jnp.where(bad, jnp.nan, 1.0)


class Constant(eqx.Module):
    """A matching whose slope is one in every parameter of the score net, and sees its draws."""

    def loss(self, score, x, key):
        return jnp.sum(score.m) + 0.0 * jnp.sum(x)


def by_hand(*, objective=None, score_steps=3, matching=None, tempering=None, ema=0.0):
    return Parts(
        target=asymmetric(),
        latent=Normal(2),
        objective=objective or Downhill(),
        matching=matching or Constant(),
        network=Slide(jnp.zeros(2)),
        score_net=Slide(jnp.zeros(2)),
        optimiser=optax.sgd(0.25),
        score_optimiser=optax.sgd(0.125),
        batch_size=8,
        score_batch_size=8,
        score_steps=score_steps,
        num_steps=20,
        ema=ema,
        score_ema=0.0,
        tempering=tempering,
    )


@pytest.mark.parametrize("score_steps", [1, 5])
def test_score_steps_for_each_sampler_step(score_steps):
    result = run_parts(by_hand(score_steps=score_steps))
    np.testing.assert_allclose(result.state.network.m, -0.25 * 20)
    np.testing.assert_allclose(result.state.score_net.m, -0.125 * 20 * score_steps)
    assert result.state.step == 20
    assert [row["step"] for row in result.rows] == [10, 20]
    assert result.outcome is pf.Outcome.FINISHED


def test_broken_steps_are_skipped_and_counted():
    result = run_parts(by_hand(objective=Downhill(broken=(2, 3, 11))))
    np.testing.assert_allclose(result.state.network.m, -0.25 * 17)
    np.testing.assert_allclose([row["skipped"] for row in result.rows], [0.2, 0.1], atol=1e-6)
    assert result.outcome is pf.Outcome.FINISHED


def test_too_many_broken_steps_end_the_run_with_the_last_finite_state():
    result = run_parts(by_hand(objective=Downhill(broken=tuple(range(2, 20))), ema=0.5), log_every=2)
    assert result.outcome is pf.Outcome.DIVERGED
    np.testing.assert_allclose(result.state.network.m, -0.25 * 2)
    assert result.rows[-1]["step"] < 20
    assert all_finite(result.state)


def test_a_few_broken_steps_do_not_end_a_short_run():
    result = run_parts(by_hand(objective=Downhill(broken=(3, 4, 5, 6))), log_every=1)
    assert result.outcome is pf.Outcome.FINISHED
    np.testing.assert_allclose(result.state.network.m, -0.25 * 16)


def test_a_short_run_that_ends_in_broken_steps_has_diverged():
    result = run_parts(by_hand(objective=Downhill(broken=(17, 18, 19))), log_every=1)
    assert result.outcome is pf.Outcome.DIVERGED
    assert result.rows[-1]["step"] == 20


def test_a_value_that_is_not_a_number_is_a_broken_step_whatever_its_slope():
    class Flat(Objective):
        def surrogate(self, key, network, z, view):
            return jnp.where(view.progress < 0.5, jnp.sum(network.m), jnp.nan)

    result = run_parts(by_hand(objective=Flat()), log_every=5)
    np.testing.assert_allclose(result.state.network.m, -0.25 * 10)
    np.testing.assert_allclose([row["skipped"] for row in result.rows], [0, 0, 1, 1])


def test_broken_score_steps_leave_the_score_net_alone():
    class Broken(eqx.Module):
        def loss(self, score, x, key):
            return jnp.sum(score.m) * jnp.nan

    result = run_parts(by_hand(matching=Broken()), log_every=5)
    assert result.outcome is pf.Outcome.DIVERGED
    np.testing.assert_array_equal(result.state.score_net.m, 0)


def test_running_average_is_the_one_by_hand():
    parts, decay = by_hand(ema=0.8), 0.8
    algorithm = alternating(parts)
    np.testing.assert_array_equal(averaged(parts, algorithm.init(KEY)).m, 0)  # nothing to average yet
    result = run_parts(parts)
    path = -0.25 * np.arange(1, 21)
    weights = decay ** np.arange(19, -1, -1)
    np.testing.assert_allclose(averaged(parts, result.state).m, weights @ path / weights.sum(), rtol=1e-5)
    # Draws are those of the average; without a memory, of the network itself.
    np.testing.assert_allclose(
        algorithm.sample(KEY, result.state, 4),
        Normal(2).sample(KEY, 4) + averaged(parts, result.state).m,
        rtol=1e-5,
    )
    forgetful = by_hand(ema=0.0)
    np.testing.assert_array_equal(averaged(forgetful, result.state).m, result.state.network.m)


class Thermometer(Objective):
    """Its value is the log density of the tempered target at one place."""

    def surrogate(self, key, network, z, view):
        return view.target.log_density(jnp.asarray([2.0, -1.0])) + 0.0 * jnp.sum(network.m)


def test_tempering_goes_from_a_standard_normal_to_the_target():
    parts = by_hand(objective=Thermometer(), tempering=parts_for(tempering=0.1).tempering)
    values = np.array([row["objective"] for row in run_parts(parts, log_every=1).rows])
    cold, warm = -0.5 * (2.0**2 + 1.0**2), float(asymmetric().log_density(jnp.asarray([2.0, -1.0])))
    b = (values - cold) / (warm - cold)
    np.testing.assert_allclose(b[0], 0.1, atol=1e-4)
    assert np.all(np.diff(b) > -1e-5)
    np.testing.assert_allclose(b[7:], 1.0, atol=1e-4)  # a third of the steps, then the target itself
    assert parts_for().tempering is None


def test_a_critic_sees_the_tempered_target():
    """At inverse temperature zero the target is the latent's own law, so the best critic is nothing."""
    hot = eqx.tree_at(
        lambda p: (p.matching, p.score_net),
        by_hand(tempering=lambda progress: 0.0 * progress),
        (Critic(asymmetric()), Slide(jnp.zeros(2))),
        is_leaf=lambda x: isinstance(x, Constant | Slide),
    )
    cold = eqx.tree_at(lambda p: p.target, hot, Gaussian(jnp.zeros(2), jnp.eye(2)))
    cold = eqx.tree_at(lambda p: p.matching, cold, Critic(cold.target))
    losses = [run_parts(parts).rows[-1]["score_loss"] for parts in (hot, cold)]
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_a_second_fit_with_equal_settings_finds_its_program_compiled():
    for objective in ("kl", "exact_kl"):
        changes = {"objective": objective, "tempering": 0.5} | (
            {"matching": "none", "network": "modulated"} if objective == "exact_kl" else {}
        )
        first, second = (jax.tree.structure(parts_for(**changes)) for _ in range(2))
        assert first == second
    draws = jnp.ones((4, 2))
    settings = tiny(forward_weight=1.0, frame="annealed")
    first, second = (jax.tree.structure(build_objective(settings, draws)) for _ in range(2))
    assert first == second


def test_deadline():
    result = run_parts(by_hand(), deadline=time.monotonic() - 1.0)
    assert (result.outcome, result.rows) == (pf.Outcome.OUT_OF_TIME, [])
    assert result.state.step == 0


@pytest.mark.parametrize("where", ["observe", "monitor"])
def test_an_interrupt_hands_back_the_last_complete_chunk(where):
    def interrupt(seen, count=[0]):  # noqa: B006
        count[0] += 1
        if count[0] == 3:
            count[0] = 0
            raise KeyboardInterrupt
        return {}

    result = run_parts(by_hand(), log_every=2, **{where: interrupt})
    assert result.outcome is pf.Outcome.INTERRUPTED
    np.testing.assert_allclose(result.state.network.m, -0.25 * 6)
    assert all_finite(result.state)


# Whole methods


def test_cutting_the_loop_elsewhere_changes_nothing():
    parts = parts_for()
    one, ten = run_parts(parts, log_every=1), run_parts(parts)
    for a, b in zip(jax.tree.leaves(one.state.network), jax.tree.leaves(ten.state.network), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    losses = np.array([row["objective"] for row in one.rows])
    np.testing.assert_allclose(
        [row["objective"] for row in ten.rows], losses.reshape(2, 10).mean(1), rtol=1e-4, atol=1e-5
    )
    assert not same(parts.network, one.state.network)


METHODS = {
    "kl, sliced, longer uniform latents": {"matching": "sliced", "latent": "uniform", "latent_dim": 5},
    "kl, denoising": {"matching": "denoising"},
    "kl, kernel": {"matching": "kernel"},
    "fisher": {"objective": "fisher"},
    "fisher by projection": {"objective": "fisher", "fisher_form": "projection", "matching": "denoising"},
    "combined": {"objective": "combined"},
    "fisher_stein": {"objective": "fisher_stein"},
    "exact_kl": {"objective": "exact_kl", "matching": "none", "network": "modulated"},
    "ksd": {"objective": "ksd", "matching": "none"},
    "steingan": {"objective": "steingan", "matching": "none"},
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs(name):
    parts = parts_for(**METHODS[name])
    result = run_parts(parts)
    assert result.outcome is pf.Outcome.FINISHED
    assert all_finite(result.state)
    assert all(row["skipped"] == 0 for row in result.rows)
    assert not same(parts.network, result.state.network)
    needs_a_net = METHODS[name].get("matching") not in ("none", "kernel")
    assert ("score_loss" in result.rows[-1]) == needs_a_net
    if needs_a_net:
        assert not same(parts.score_net, result.state.score_net)


@pytest.fixture(scope="module")
def fitted():
    return pf.fit(KEY, asymmetric(), settings=tiny(), progress=False)


def test_the_same_key_gives_the_same_bits(fitted):
    again = pf.fit(KEY, asymmetric(), settings=tiny(), progress=False)
    assert same(again.sampler, fitted.sampler)
    for a, b in zip(again.history, fitted.history, strict=True):
        assert {k: v for k, v in a.items() if k != "seconds"} == {
            k: v for k, v in b.items() if k != "seconds"
        }


def test_a_fit_tells_its_story(fitted, tmp_path):
    assert fitted.outcome is pf.Outcome.FINISHED
    assert fitted.outcome.good
    assert fitted.history[-1]["step"] == 20
    assert {"objective", "score_loss", "skipped", "ksd_imq_v", "seconds"} <= fitted.history[-1].keys()
    about = fitted.sampler.about
    assert (about["target"], about["method"], about["outcome"]) == ("gaussian", "tiny", "FINISHED")
    assert about["settings"]["num_steps"] == 20
    assert "gaussian" in repr(fitted)
    fitted.sampler.save(tmp_path / "s.pf")
    loaded = pf.load(tmp_path / "s.pf")
    assert loaded.about == about
    assert same(loaded, fitted.sampler)


# What is looked at before the training may meet a stripe, and warns then.
@pytest.mark.filterwarnings("ignore:`target`")
def test_a_target_broken_in_places_is_trained_around():
    """On narrow stripes, a hundredth of all space, it is not a number: a quarter of the batches meet one."""
    clean = asymmetric()

    def log_density(x):
        return jnp.where(jnp.sin(40.0 * x[0]) > 0.9995, jnp.nan, 1.0) * clean.log_density(x)

    settings = tiny(num_steps=200)
    target = pf.Target.from_log_density(log_density, dim=2)
    done = pf.fit(KEY, target, settings=settings, progress=False)
    assert done.outcome is pf.Outcome.FINISHED
    (train,) = (phase for phase in done.phases if phase["phase"] == "train")
    assert 0.1 < train["skipped"] < 0.5
    assert np.all(np.isfinite(done.sampler.sample(KEY, 1_000)))


def cliff(x):
    """Uphill to the right; from x_0 = 5 on there is a value but no slope in x_1."""
    beyond = jnp.where(x[0] > 5.0, 0.0, 1.0)
    return -0.5 * ((x[0] - 30.0) ** 2 / 9.0 + x[1] ** 2) + jnp.sqrt(beyond * (1.0 + x[1] ** 2))


def test_a_fit_that_diverges():
    target = pf.Target.from_log_density(cliff, dim=2)
    settings = tiny(num_steps=200, learning_rate=0.1, ema=0.5)
    with pytest.raises(pf.FitError) as caught:
        pf.fit(KEY, target, settings=settings, progress=False)
    assert "coordinate(s) [1]" in str(caught.value)
    assert "learning_rate" in str(caught.value)
    done = pf.fit(KEY, target, settings=settings, progress=False, throw=False)
    for each in (done, caught.value.fit):
        assert each.outcome is pf.Outcome.DIVERGED
        assert not each.outcome.good
        assert 2 < each.history[-1]["step"] < 200
        assert each.history[0]["skipped"] < 1
        assert np.all(np.isfinite(each.sampler.sample(KEY, 100)))
    assert same(done.sampler, caught.value.fit.sampler)


def test_an_interrupted_fit_hands_back_a_sampler(fitted):
    rows = []

    def interrupt(row):
        rows.append(row)
        if len(rows) == 3:
            raise KeyboardInterrupt

    done = pf.fit(
        jax.random.key(18), asymmetric(), settings=tiny(), steps=10, progress=False, callback=interrupt
    )
    assert done.outcome is pf.Outcome.INTERRUPTED
    assert done.sampler.about["outcome"] == "INTERRUPTED"
    assert np.all(np.isfinite(done.sampler.sample(KEY, 10)))
    # Here also: `steps` take the place of the settings' own, and another key gives another run.
    assert done.settings.num_steps == 10
    assert done.history[0]["objective"] != fitted.history[0]["objective"]


def interrupted(*args):
    raise KeyboardInterrupt


def test_an_interrupt_before_anything_was_found_is_raised():
    with pytest.raises(KeyboardInterrupt):
        pf.fit(KEY, asymmetric(), settings=tiny(network=interrupted), progress=False)


class Pressed:
    """A log density that Ctrl-C meets when it is compiled for the first time after training."""

    def __init__(self):
        self.trained, self.inner = False, asymmetric()

    def __call__(self, x):
        if self.trained:
            self.trained = False
            raise KeyboardInterrupt
        return self.inner.log_density(x)

    def row(self, row):
        self.trained = row["stage"] == "train" and row["step"] == 4
        if self.trained:
            # Looks at the training ask as the comparison does: their program would serve.
            jax.clear_caches()


def cut_short(*args):
    """Reweight, and meet Ctrl-C before handing anything over."""
    for _ in pf.methods.REWEIGHT.run(*args):
        raise KeyboardInterrupt
    yield


def rounds_at(*places, interrupts):
    """Return a stage that finds a normal law, first at one place and then at another."""

    def rounds(key, state, recipe, clock):
        for place in places:
            mixture = NormalMixture(jnp.ones(1), jnp.full((1, 2), place), jnp.eye(2)[None])
            draws = mixture.sample(KEY, 64)
            yield state.replace(frame=Frame.identity(2), latent=mixture, draws=draws, log_z=0.0)
            if interrupts:
                raise KeyboardInterrupt

    return pf.Stage("anneal", lambda state, recipe: True, rounds)


@pytest.mark.parametrize("where", ["second round", "building", "comparing", "reweighting"])
def test_an_interrupt_at_any_moment_hands_back_what_was_found(where):
    log_density = Pressed()
    settings = tiny(
        frame="annealed", latent="mixture", objective="exact_kl", matching="none", num_steps=4, learning_rate=1e-6,
        network=interrupted if where == "building" else lambda key, latent, dim: modulated(key, dim, width=8, depth=1),
    )  # fmt: skip
    anneal = rounds_at(3.0, 5.0, interrupts=where == "second round")
    run = cut_short if where == "reweighting" else pf.methods.REWEIGHT.run
    stages = (anneal, pf.methods.TRAIN, dataclasses.replace(pf.methods.REWEIGHT, run=run))
    method = pf.methods.Default().replace(stages=stages, training=settings)
    target = pf.Target.from_log_density(log_density, dim=2, name="pressed")
    done = pf.fit(
        KEY, target, method=method, progress=False, callback=log_density.row if where == "comparing" else None
    )
    assert done.outcome is pf.Outcome.INTERRUPTED
    assert bool(done.history) == (where in ("comparing", "reweighting"))
    centre = np.asarray(done.sampler.sample(KEY, 1_000)).mean()
    assert abs(centre - (3.0 if where == "second round" else 5.0)) < 0.2
    assert {phase["phase"] for phase in done.phases} >= {"anneal"}


def test_draws_lost_outside_the_support_are_seen():
    """Minus infinity beyond a slanted edge, with no slope there to tell of it."""
    clean = asymmetric()

    def log_density(x):
        return jnp.where(x[0] + 0.3 * x[1] > -1.0, clean.log_density(x), -jnp.inf)

    target = pf.Target.from_log_density(log_density, dim=2)
    with pytest.warns(UserWarning, match="`target`"):
        done = pf.fit(KEY, target, settings=tiny(), progress=False)
    assert 0.0 < done.history[-1]["inside"] < 1.0
    assert done.sampler.about["metrics"]["inside"] == done.history[-1]["inside"]
