"""Necks: widths that follow a coordinate are found in draws, and particles go along them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.latents import NormalMixture
from pushforward.networks.coupled import _bounded, coupled, unbounded
from pushforward.targets import correlated_gaussian, funnel_nd
from pushforward.training import teacher
from pushforward.training.lesson import Lesson, standard
from pushforward.training.neck_map import filled_up, necked
from pushforward.training.neck_rounds import seen_by_necks, through_necks
from pushforward.training.necks import find_necks
from pushforward.training.peaks import Peaks
from pushforward.training.pulled_back import PulledBack
from pushforward.training.smc import Teaching, efficiency_of

DIM, MANY = 24, 8192


def latents(frame, network, x):
    return np.asarray(jax.vmap(lambda row: network.inverse_and_log_det(frame.inverse(row))[0])(x))


def two_necks(seed: int, n: int = MANY):
    """Coordinates 3 and 20 are necks; those below 10 follow the one, those above the other, which turns."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, DIM))
    x = z.copy()
    for j in set(range(DIM)) - {3, 20}:
        x[:, j] *= np.exp(0.8 * z[:, 3] if j < 10 else -0.5 * z[:, 20])
    return jnp.asarray(100.0 + 7.0 * x, float)


def test_the_neck_of_a_funnel_is_found_and_its_map_is_the_funnel():
    target = funnel_nd(DIM)
    necks, frame, network = necked(target.sample(jax.random.key(0), MANY), white=False)
    assert necks == (0,)
    found = efficiency_of(jax.random.key(1), PulledBack(InFrame(target, frame), network), standard(DIM))
    assert float(found) > 0.9


def test_widths_hold_beyond_the_draws_they_were_learnt_from():
    target = funnel_nd(DIM)
    x = target.sample(jax.random.key(0), 8 * MANY)
    near = x[jnp.abs(x[:, 0]) < 1.5]
    _, frame, network = necked(near, white=False)
    for low, high in ((-6.0, -4.0), (4.0, 6.0)):
        far = x[(x[:, 0] > low) & (x[:, 0] < high)]
        widths = latents(frame, network, far)[:, 1:].std(0)
        assert np.abs(np.log(widths)).mean() < 0.1


def test_draws_without_a_neck_have_none():
    target = correlated_gaussian(jax.random.key(5), DIM)
    x = target.sample(jax.random.key(0), MANY)
    assert necked(x, white=True) is None
    assert seen_by_necks(jax.random.key(1), target, x) is None


def test_coordinates_may_follow_different_necks():
    necks, frame, network = necked(two_necks(0), white=False)
    assert sorted(necks) == [3, 20]
    z = latents(frame, network, two_necks(1))
    assert np.abs(z.std(0) - 1.0).max() < 0.08
    # Nothing is left that follows a neck: the size of no latent goes with another.
    left = np.corrcoef(np.abs(z), z, rowvar=False)[:DIM, DIM:]
    assert np.abs(left - np.diag(np.diag(left))).max() < 0.06


def test_widths_that_hardly_follow_make_no_neck():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4 * MANY, DIM))
    for slope, is_neck in ((0.15, False), (0.3, True)):
        u = z * np.exp(slope * z[:, [3]])
        u[:, 3] = z[:, 3]
        found = find_necks(u)
        assert (found is not None) == is_neck


@pytest.mark.parametrize("outlier", [1e3, 1e30])
def test_one_far_draw_does_not_hide_a_neck(outlier):
    u = np.array((two_necks(0) - 100.0) / 7.0, np.float64)
    u[0, 3] = outlier
    found = find_necks(u)
    assert found is not None
    assert sorted(found.necks) == [3, 20]
    assert np.isfinite(found.slopes).all()


@pytest.mark.parametrize("white", [False, True])
@pytest.mark.parametrize("how", ["nearly constant", "few", "huge"])
def test_odd_draws_are_no_error(how, white):
    x = np.array(two_necks(0, 512))
    if how == "nearly constant":
        x[:, [3, 5]] = 1.0
        x[0, [3, 5]] = 2.0
    if how == "few":
        x = np.repeat(x[:4], 128, axis=0)
    if how == "huge":
        x[:, 7] *= 1e18
    found = necked(jnp.asarray(x), white=white)
    assert found is None or all(np.isfinite(a).all() for a in jax.tree.leaves(found[1:]))


def test_a_map_of_necks_is_the_same_with_units_to_spare():
    _, _, narrow = necked(two_necks(0), white=False)
    wide, fresh = filled_up(jax.random.key(0), narrow), coupled(jax.random.key(1), DIM)
    assert [a.shape for a in jax.tree.leaves(wide)] == [a.shape for a in jax.tree.leaves(fresh)]
    z = jax.random.normal(jax.random.key(2), (100, DIM))
    np.testing.assert_allclose(jax.vmap(wide)(z), jax.vmap(narrow)(z), rtol=1e-4, atol=1e-4)


def test_a_layer_can_be_told_by_how_much_to_stretch():
    logs = np.linspace(-7.5, 2.8, 50)
    np.testing.assert_allclose(_bounded(jnp.asarray(unbounded(logs))), logs, atol=1e-4)


def test_a_mixture_that_is_nearer_to_the_target_is_kept():
    """Two normals of unlike widths: widths do follow a coordinate, but no map of it is the target."""
    means = jnp.zeros((2, DIM)).at[:, 0].set(jnp.asarray([4.0, -4.0]))
    law = NormalMixture(jnp.full(2, 0.5), means, jnp.eye(DIM) * jnp.asarray([1.0, 0.3])[:, None, None])
    target = Target.from_log_density(law.log_density, dim=DIM, name="two")
    x = law.sample(jax.random.key(0), MANY)
    assert seen_by_necks(jax.random.key(1), target, x) is not None
    lesson = Lesson(Frame.identity(DIM), law, x, 0.0, [])
    assert seen_by_necks(jax.random.key(1), target, x, lesson) is None


def test_particles_go_along_the_neck_of_a_funnel_in_many_dimensions():
    """From draws of its middle only, in two rounds; moves without a map of the neck hardly leave it."""
    target = funnel_nd(DIM)
    x = target.sample(jax.random.key(0), MANY)
    near = x[jnp.abs(x[:, 0]) < 1.5]
    plain = Lesson(Frame.identity(DIM), standard(DIM), near, 0.0, [{}])
    seen = seen_by_necks(jax.random.key(1), target, near, plain)
    assert seen is not None
    words = {"num_particles": 512, "observe": lambda words: None}
    lessons = list(through_necks(jax.random.key(2), target, plain, seen, **words))
    last = lessons[-1]
    assert last.rounds[-1]["efficiency"] > 0.85
    assert last.log_z == pytest.approx(float(target.log_z), abs=0.5)
    z = standard(DIM).sample(jax.random.key(3), 4096)
    draws = np.asarray(jax.vmap(lambda row: last.frame(last.network(row)))(z))
    assert draws[:, 0].std() == pytest.approx(3.0, rel=0.15)


def test_a_lesson_goes_along_necks_before_maps(monkeypatch):
    """And on to maps where that was not enough, from the map that it has."""
    began = []
    peaks = Peaks(np.zeros((1, DIM)), np.eye(DIM)[None], np.zeros(1))
    monkeypatch.setattr(teacher, "scout", lambda *_: peaks)
    monkeypatch.setattr(teacher, "with_stops", lambda *_: peaks)
    draws = Teaching(jnp.zeros((8, DIM)), 0.0, 1, 0.5, 0.0)
    monkeypatch.setattr(teacher, "teach", lambda *_, **__: draws)
    monkeypatch.setattr(teacher, "efficiency_of", lambda *_: jnp.asarray(0.1))
    monkeypatch.setattr(teacher, "seen_by_necks", lambda *_: "seen")
    monkeypatch.setattr(teacher, "stand_in", lambda key, x, *_: (Frame.identity(DIM), standard(DIM)))

    def necks(key, target, lesson, seen, **_):
        assert seen == "seen"
        yield lesson._replace(rounds=[*lesson.rounds, {"efficiency": 0.1}], network="map of necks")

    monkeypatch.setattr(teacher, "through_necks", necks)
    monkeypatch.setattr(teacher, "through_maps", lambda key, target, lesson, **_: began.append(lesson) or ())
    lessons = list(teacher.learn(jax.random.key(0), funnel_nd(DIM), num_particles=128))
    assert [lesson.network for lesson in lessons] == [None, "map of necks"]
    assert [lesson.network for lesson in began] == ["map of necks"]
