"""Densities that end somewhere, repeat themselves, or are no functions: each is named, with what to write."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.operations import OneByOne, one_by_one
from pushforward.preflight.checks import require_target as refuse

pytestmark = pytest.mark.usefixtures("unhooked")
KEY = jax.random.key(0)


def target(fn, dim=2, **options):
    return pf.Target.from_log_density(fn, dim=dim, name="mine", **options)


def half(x):
    return -0.5 * jnp.sum(x**2)


def inside(condition, dim=2):
    return target(lambda x: jnp.where(condition(x), half(x), -jnp.inf), dim)


BOUNDED = {
    "box": (inside(lambda x: (jnp.abs(x) < 1).all(), 3), "bounds=(-1, 1)"),
    "half-space": (target(lambda x: jnp.log(x[0]) - x[0] - x[1] ** 2), "bounds=([0, None], None)"),
    "quadrant": (inside(lambda x: (x > 0.5).all()), "bounds=(0.5, None)"),
    "beta": (target(lambda x: jnp.sum(jnp.log(x) + jnp.log1p(-x)), 5), "bounds=(0, 1)"),
    "flat and wide": (
        target(lambda x: jnp.where((jnp.abs(x) < 100).all(), 0.0 * x.sum(), -jnp.inf)),
        "bounds=(-100, 100)",
    ),
    "far from the origin": (
        target(lambda x: jnp.where((jnp.abs(x - 10) < 2).all(), half(x - 10), -jnp.inf)),
        "bounds=(8, 12)",
    ),
    "simplex": (target(lambda x: jnp.sum(jnp.log(x)) + jnp.log1p(-x.sum())), 'constraints="simplex"'),
    "increasing": (inside(lambda x: (jnp.diff(x) > 0).all(), 3), 'constraints="ordered"'),
    "angle": (target(lambda x: 2 * jnp.cos(x[0]) - x[1] ** 2), "bounds=([-3.14159265, None], [3.14159265, None])"),
    "odd period": (target(lambda x: jnp.sin(1.7 * x[0]) - x[1] ** 2), "period 3.69599"),
    "named": (
        pf.Target.from_log_density(
            lambda p: jnp.where(jnp.abs(p["m"]) < 1, 0.0, -jnp.inf) - p["n"] ** 2, example={"m": 0.0, "n": 0.0}
        ),
        'constraints={"m": ("interval", -1, 1)}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_are_refused_with_the_declaration_to_write(name):
    bounded, remedy = BOUNDED[name]
    with pytest.raises(ValueError, match="`target`") as caught:
        refuse(KEY, bounded)
    assert remedy in str(caught.value)
    assert not pf.check_target(bounded).ok


TOLD = {
    "hole": (inside(lambda x: jnp.sum(x**2) > 1), "has a hole at a radius of 1 around (0, 0)"),
    "disc": (inside(lambda x: jnp.sum((x - 1) ** 2) < 4), "ends at a radius of 2 around (1, 1)"),
    "gap": (inside(lambda x: jnp.abs(x[0]) > 1), "a gap in x[0] between -1 and 1"),
    "slanted": (inside(lambda x: x.sum() < 0.5), "a slanted edge, +1 x[0] +1 x[1] = 0.5"),
    "soft": (target(lambda x: 2 * jnp.log(x[0]) - x[0] - x[1] ** 2), "bounds=([0, None], None)"),
    "double": (target(lambda x: half(x.astype(jnp.float64))), "jax_enable_x64"),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_has_no_declaration_or_little_mass_at_its_edge_is_told(name):
    odd, words = TOLD[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refuse(KEY, odd)
    told = [str(each.message) for each in caught if str(each.message).startswith("`target`")]
    assert words in "".join(told)


def test_what_only_overflows_or_holds_no_mass_is_no_edge():
    for fn in (
        lambda x: jnp.sum(x - jnp.exp(x)),
        lambda x: -jnp.sum(x**16),
        lambda x: 19 * jnp.log(x[0]) - x.sum() ** 2,
    ):
        lines = {line.what: line.verdict for line in pf.check_target(target(fn)).lines}
        assert lines["support"] == "good"


@jax.custom_vjp
def _noisy(x):
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    draw = np.random.default_rng(0).normal
    return jax.pure_callback(lambda x: np.float32(half(x) + draw()), shape, x, vmap_method="sequential")


_noisy.defvjp(lambda x: (_noisy(x), x), lambda x, c: (-c * x,))


def off(factors):
    """A gradient that is wrong by some factor in each coordinate."""
    fn = jax.custom_vjp(half)
    fn.defvjp(lambda x: (half(x), x), lambda x, c: (-c * x * factors,))
    return target(fn, 3)


def like_torch(x):
    raise TypeError("sum(): argument 'input' (position 1) must be Tensor, not JitTracer")


def raising(x):
    raise KeyError("no column 'age'")


REFUSED = {
    "offset": (target(lambda x: half(x) + 1e8), "Subtract a constant"),
    "noise": (target(_noisy), "changes from call to call"),
    "gradient off by 1 %": (off(1.01), "+1.0% off everywhere"),
    "one of three off by 1 %": (off(jnp.array([1.0, 1.01, 1.0])), "+1.0% off in coordinate 1"),
    "too slow for its dimension": (target(lambda x: -0.9 * jnp.log1p(jnp.sum(x**2))), "like 1/r^1.80"),
    "batch": (target(lambda x: -jnp.sum(x**2, axis=1)), "lambda x: fn(x[None])[0]"),
    "NumPy": (target(lambda x: -np.sum(np.exp(x))), "NumPy or SciPy, which JAX cannot follow: write `jnp`"),
    "PyTorch": (target(like_torch), "PyTorch, which JAX cannot follow: write `jnp`"),
    "branch": (target(lambda x: -(x[0] ** 2) if x[1] > 0 else half(x)), "`if`, `float()` and `math` cannot"),
    "raises": (target(raising), "of test_supports.py: KeyError: \"no column 'age'\""),
    "index": (target(lambda x: -(x[5] ** 2) - x[0] ** 2), "an index beyond the end of an array"),
    "no gradient": (
        target(lambda x: jax.lax.while_loop(lambda v: v > 1, lambda v: v - 1, jnp.sum(x**2))),
        "has no gradient",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_function_or_a_wrong_one_is_refused(name):
    wrong, words = REFUSED[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        refuse(KEY, wrong)
    assert words in str(caught.value)


def test_right_functions_pass_whatever_their_gradient_is_made_of():
    refuse(KEY, off(1.0))
    refuse(KEY, target(lambda x: half(x - 5000.0)))
    refuse(KEY, target(lambda x: -jnp.sum(jnp.abs(x)) - 100.0))


def test_curvature_of_what_can_be_differentiated_once_is_by_differences():
    # Both may stand inside a fit, which asks for second derivatives.
    for once in (off(1.0), target(_noisy, 3)):
        assert isinstance(one_by_one(once), OneByOne)
    found = one_by_one(off(1.0)).hessian(jnp.array([0.3, -2.0, 5.0]))
    np.testing.assert_allclose(found, -np.eye(3), atol=1e-3)
    assert one_by_one(good := target(half)) is good


def test_draws_of_what_the_remedy_declares_are_right_and_inside(tmp_path):
    bounded = target(lambda x: jnp.log(x[0]) - x[0] - x[1] ** 2, bounds=([0, None], None))
    fit = pf.fit(KEY, bounded, "annealed", progress=False)
    fit.sampler.save(tmp_path / "a.pf")
    draws = pf.load(tmp_path / "a.pf").draws(jax.random.key(1), 20_000)["x"]
    assert draws.shape == (20_000, 2)
    assert (draws[:, 0] > 0).all()
    # Gamma(2) and N(0, 1/2): errors of the means are 0.01 and 0.005, of the deviations as large.
    np.testing.assert_allclose(draws.mean(axis=0), [2.0, 0.0], atol=0.06)
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt([2.0, 0.5]), rtol=0.05)
