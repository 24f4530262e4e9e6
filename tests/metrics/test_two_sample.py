import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from pushforward.metrics import floor, sliced_w2
from pushforward.metrics.inputs import check_draws, check_pair
from pushforward.metrics.two_sample import _sort
from reproduce.metrics.distances import PROTOCOLS, in_asinh, mmd
from reproduce.metrics.modes import mode_weight_error

KEY = jax.random.key(0)


def standard(seed, n, dim=2):
    return jax.random.normal(jax.random.key(seed), (n, dim))


def test_sliced_w2_of_a_rigid_shift_is_exact():
    # Every projection moves by u.m, so the distance is the root mean square of u.m.
    x, shift = standard(1, 500), jnp.array([3.0, -1.0])
    directions = jax.random.normal(KEY, (64, 2))
    directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
    expected = jnp.sqrt(jnp.mean((directions @ shift) ** 2))
    np.testing.assert_allclose(sliced_w2(KEY, x, x[::-1] + shift), expected, rtol=1e-5)
    assert sliced_w2(KEY, x, x[::-1]) == 0


def test_sliced_w2_of_shifted_gaussians_is_the_closed_form():
    # N(0, I) and N(m, s^2 I): W2^2 along u is (u.m)^2 + (s - 1)^2, whose mean over u is
    # |m|^2 / 2 + (s - 1)^2. With 512 directions (u.m)^2 has a standard error of 3 %, of which the
    # root keeps half; 20,000 draws add 1 %. A tenth is over 5 standard errors.
    x, y = standard(1, 20_000), 1.5 * standard(2, 20_000) + jnp.array([1.0, -0.5])
    expected = np.sqrt(1.25 / 2 + 0.25)
    np.testing.assert_allclose(sliced_w2(KEY, x, y, num_directions=512), expected, rtol=0.1)
    # A law with the wrong scale is seen.
    assert sliced_w2(KEY, x, y / 1.5, num_directions=512) < 0.8 * expected


def test_sorting_by_integers_is_sorting():
    rows = jnp.array([[0.0, -3.5, 2.0, -1e-30, 1e30, -1e30, 2.0, 1e-30]])
    np.testing.assert_array_equal(_sort(rows), jnp.sort(rows, axis=1))


def test_mmd_is_that_of_a_double_loop():
    x, y = standard(1, 60), standard(2, 140) * 1.5
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    square = lambda p, q: ((p[:, None] - q[None]) ** 2).sum(-1)  # noqa: E731
    h = np.sqrt(np.median(square(b, b)))
    kernel = lambda p, q: np.mean(  # noqa: E731
        [np.exp(-square(p, q) / (2 * (f * h) ** 2)) for f in (0.25, 0.5, 1, 2, 4)], axis=0
    )
    within = lambda p: (kernel(p, p).sum() - len(p)) / (len(p) * (len(p) - 1))  # noqa: E731
    np.testing.assert_allclose(
        mmd(x, y), within(a) + within(b) - 2 * kernel(a, b).mean(), rtol=1e-3, atol=1e-5
    )


def test_an_unbiased_distance_vanishes_for_equal_laws():
    # 60 pairs, |t| < 5: false failure below 1e-5.
    null = floor(KEY, PROTOCOLS["mmd"], targets.mog2(), 200, repeats=60)
    assert abs(null.mean) < 5 * null.sd / np.sqrt(60)


JUDGES = {name: PROTOCOLS[name] for name in ("sliced_w2", "mmd", "ksd_imq_u")}
JUDGES["mode_weight_error"] = lambda key, draws, target: mode_weight_error(draws, target)


@pytest.mark.parametrize("metric", JUDGES)
def test_wrong_mode_weights_are_seen_where_the_ksd_is_blind(metric):
    # The planted error: right modes, 70 to 30 in place of half and half.
    target = targets.mog2()
    one = target.sample(jax.random.key(1), 4000)
    left = one[:, 0] < 0
    draws = jnp.concatenate([one[left][:1050], one[~left][:450]])
    null = floor(KEY, JUDGES[metric], target, 1500, repeats=10)
    seen = JUDGES[metric](KEY, draws, target) > null.mean + 6 * null.sd
    assert bool(seen) is (metric != "ksd_imq_u")


def test_asinh_lets_every_scale_count():
    # A funnel whose neck is squeezed: the wide mouth drowns it until both sides are transformed.
    target = targets.funnel()
    x, y = (target.sample(jax.random.key(k), 4000) for k in (1, 2))
    narrow = jnp.where(x[:, 1:] < 1, jnp.array([1.0, 0.5]), x)
    centre, scale = jnp.array([1.0, 4.0]), jnp.array([0.1, 3.0])
    plain = sliced_w2(KEY, narrow, y) / sliced_w2(KEY, x, y)
    seen = sliced_w2(KEY, in_asinh(narrow, centre, scale), in_asinh(y, centre, scale))
    seen /= sliced_w2(KEY, in_asinh(x, centre, scale), in_asinh(y, centre, scale))
    assert plain < 1.2
    assert seen > 3
    one_scale_out = in_asinh(centre[None] + scale, centre, scale)
    np.testing.assert_allclose(one_scale_out, np.arcsinh([[1, 1]]), rtol=1e-5)


def test_directions_come_from_the_key():
    x, y = standard(1, 100), standard(2, 100)
    assert sliced_w2(KEY, x, y) == sliced_w2(KEY, x, y)
    assert sliced_w2(KEY, x, y) != sliced_w2(jax.random.key(9), x, y)


def test_what_is_refused():
    x, y = standard(1, 10), standard(2, 11)
    with pytest.raises(ValueError, match=r"equally many draws; got 10 and 11"):
        check_pair(x, y, equal=True)
    with pytest.raises(ValueError, match=r"`num_directions` must be a positive integer; got 0"):
        sliced_w2(KEY, x, y[:10], num_directions=0)
    with pytest.raises(ValueError, match=r"`y` must be finite; 1 of its 11 rows are not"):
        mmd(x, y.at[4, 1].set(jnp.nan))
    with pytest.raises(ValueError, match=r"`y` must hold at least 2 draws"):
        mmd(x, y[:1])


BAD_DRAWS = {
    "one point": (jnp.ones(2), r"must have shape \(n, 2\); got \(2,\)"),
    "three axes": (jnp.ones((2, 2, 2)), r"must have shape \(n, 2\); got \(2, 2, 2\)"),
    "wrong dim": (jnp.ones((4, 3)), r"must have shape \(n, 2\); got \(4, 3\)"),
    "too few": (jnp.ones((1, 2)), r"at least 2 draws for this metric; got 1"),
    "complex": (jnp.ones((4, 2), complex), r"must hold real numbers"),
}


@pytest.mark.parametrize(("draws", "message"), BAD_DRAWS.values(), ids=BAD_DRAWS.keys())
def test_malformed_draws(draws, message):
    with pytest.raises((ValueError, TypeError), match=message):
        check_draws(draws, dim=2)


def test_a_flat_array_gets_a_remedy():
    with pytest.raises(ValueError, match=r"`draws\[:, None\]`"):
        check_draws(jnp.ones(7))


def test_arrays_of_numpy_and_of_integers_are_welcome():
    assert check_draws(np.arange(6).reshape(3, 2)).dtype == jnp.float32
