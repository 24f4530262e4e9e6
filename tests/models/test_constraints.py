"""Every constraint against NumPyro's bijector, against autodiff's Jacobian, and there and back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to

import pushforward as pf
from pushforward.parameters import KINDS, Parameter, Parameters, read_constraint

TABLE = {
    # name: our spec, shape, NumPyro's constraint
    "real": ("real", (2,), constraints.real),
    "positive": ("positive", (3,), constraints.positive),
    "softplus_positive": ("softplus_positive", (2,), constraints.softplus_positive),
    "greater_than": (("greater_than", -1.5), (2,), constraints.greater_than(-1.5)),
    "less_than": (("less_than", [2.0, 3.0]), (2,), constraints.less_than(np.array([2.0, 3.0]))),
    "interval": (("interval", -1.0, 4.0), (2, 2), constraints.interval(-1.0, 4.0)),
    "unit_interval": ("unit_interval", (), constraints.unit_interval),
    "simplex": ("simplex", (2, 3), constraints.simplex),
    "ordered": ("ordered", (3,), constraints.ordered_vector),
    "positive_ordered": ("positive_ordered", (3,), constraints.positive_ordered_vector),
    "zero_sum": ("zero_sum", (4,), constraints.zero_sum(1)),
    "l1_ball": ("l1_ball", (3,), constraints.l1_ball),
    "corr_cholesky": ("corr_cholesky", (4, 4), constraints.corr_cholesky),
    "corr_matrix": ("corr_matrix", (3, 3), constraints.corr_matrix),
    "lower_cholesky": ("lower_cholesky", (3, 3), constraints.lower_cholesky),
    "positive_definite": ("positive_definite", (2, 2, 2), constraints.positive_definite),
}


def test_every_constraint_is_in_the_table():
    assert set(TABLE) | {"packed_cholesky", "box"} == set(KINDS)


@pytest.mark.parametrize("name", TABLE)
def test_maps_and_log_determinants_are_numpyros(name):
    spec, shape, theirs = TABLE[name]
    item = read_constraint("a", shape, spec)
    assert item == read_constraint("a", shape, theirs)
    record, transform = Parameters((item,)), biject_to(theirs)
    with jax.enable_x64(True):
        u = np.random.default_rng(1).normal(size=(5, record.dim)) * 1.5
        y = transform(jnp.asarray(u).reshape(5, *item.free_shape))
        log_det = transform.log_abs_det_jacobian(jnp.asarray(u).reshape(5, *item.free_shape), y)
        ours = record.constrain(u)["a"]
        np.testing.assert_allclose(ours, y, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(record.constrain(jnp.asarray(u))["a"], y, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            record.log_det(u), np.reshape(log_det, (5, -1)).sum(1), rtol=1e-9, atol=1e-10
        )
        np.testing.assert_allclose(record.unconstrain({"a": ours}), u, rtol=1e-8, atol=1e-8)


def independent(name, y):
    """The coordinates that determine a value, so that a Jacobian is square."""
    if name in ("simplex", "zero_sum"):
        return y[..., :-1]
    if name in ("corr_cholesky", "corr_matrix"):
        rows, columns = np.tril_indices(y.shape[-1], -1)
        return y[..., rows, columns]
    if name in ("lower_cholesky", "positive_definite"):
        rows, columns = np.tril_indices(y.shape[-1])
        return y[..., rows, columns]
    return y


@pytest.mark.parametrize(
    "name", ["interval", "simplex", "positive_ordered", "corr_matrix", "packed_cholesky"]
)
def test_log_determinants_are_those_of_the_jacobian(name):
    # The rest is held to NumPyro's above; these are the ones that are composed or that NumPyro has not.
    spec, shape, _ = TABLE.get(name, (name, (6,), None))
    record = Parameters((read_constraint("a", shape, spec),))
    u = np.random.default_rng(2).normal(size=record.dim)
    with jax.enable_x64(True):
        jacobian = jax.jacobian(lambda u: independent(name, record.constrain(u)["a"]).reshape(-1))(
            jnp.asarray(u)
        )
        expected = np.linalg.slogdet(np.asarray(jacobian))[1]
    np.testing.assert_allclose(record.log_det(u), expected, rtol=1e-9)
    assert abs(record.log_det(1.01 * u) - expected) > 1e-4  # the test sees an error of a percent


def test_a_box_has_the_maps_of_the_limits_of_each_coordinate(unhooked):
    low, high = [0, None, None, -1], [None, 2, None, 1]
    box = pf.Target.from_log_density(lambda x: 0.0 * x[0], dim=4, bounds=(low, high)).parameters
    assert Parameters.from_json(box.to_json()) == box
    u = np.array([[-3.0, 0.4, 7.0, 0.5], [60.0, -60.0, -5.0, -40.0]], np.float32)
    specs = (("greater_than", 0), ("less_than", 2), "real", ("interval", -1, 1))
    for module in (np, jnp):
        y, log_det = box.constrain(module.asarray(u))["x"], box.log_det(module.asarray(u))
        alone = [Parameters((read_constraint("a", (), spec),)) for spec in specs]
        expected = [each.constrain(u[:, i : i + 1])["a"] for i, each in enumerate(alone)]
        np.testing.assert_allclose(y, np.stack(expected, axis=1), rtol=1e-6)
        logs = sum(each.log_det(u[:, i : i + 1]) for i, each in enumerate(alone))
        np.testing.assert_allclose(log_det, logs, rtol=1e-6)
        np.testing.assert_allclose(box.unconstrain({"x": y[:1]}), u[:1], rtol=1e-5)
    slope = jax.jacobian(lambda u: box.constrain(u)["x"])(jnp.asarray(u[1]))
    assert np.isfinite(slope[:, 3]).all()


BOUNDS = {
    "one number": (3.0, "must be `(low, high)`"),
    "reversed": ((1.0, 0.0), "each low must lie below its high; in coordinate 0"),
    "three for two": ((0.0, [1, 2, 3]), "`bounds`: a limit for `dim=2`"),
    "NaN": ((np.nan, 1.0), "finite, or None"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_that_are_none_are_explained(name, unhooked):
    bounds, words = BOUNDS[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        pf.Target.from_log_density(lambda x: 0.0, dim=2, bounds=bounds)
    assert words in str(caught.value)
    with pytest.raises(ValueError, match="need `dim`"):
        pf.Target.from_log_density(lambda x: 0.0, example=0.0, bounds=(0, 1))


def test_zero_sum_keeps_lengths():
    record = Parameters((Parameter("a", (5,), "zero_sum"),))
    u = np.random.default_rng(0).normal(size=(3, 4))
    y = record.constrain(u)["a"]
    np.testing.assert_allclose(y.sum(1), 0.0, atol=1e-12)
    np.testing.assert_allclose((y**2).sum(1), (u**2).sum(1))


@pytest.mark.parametrize("name", TABLE)
def test_values_far_out_are_finite_in_single_precision_and_inside(name):
    spec, shape, _ = TABLE[name]
    record = Parameters((read_constraint("a", shape, spec),))
    for far in (-60.0, 60.0):
        u = np.full(record.dim, far, np.float32)
        with np.errstate(over="ignore"):
            y = record.constrain(u)["a"]
        assert y.dtype == np.float32
        if name not in (
            "positive_ordered",
            "positive_definite",
        ):  # exp(exp(60)), exp(60)^2: infinite in truth
            assert np.isfinite(y).all()
            assert np.isfinite(record.log_det(u))
        if name == "simplex":
            assert (y > 0).all()
            np.testing.assert_allclose(y.sum(-1), 1.0, rtol=1e-5)


def test_records_come_back_from_json_and_hash():
    record = Parameters(
        tuple(read_constraint(name, shape, spec) for name, (spec, shape, _) in TABLE.items()),
        coords=(("site", ("a", 2, 3.5)),),
    )
    assert Parameters.from_json(record.to_json()) == record
    assert hash(Parameters.from_json(record.to_json())) == hash(record)


BAD = {
    "simplex of a number": ("simplex", (), "needs a vector"),
    "Cholesky of a vector": ("corr_cholesky", (3,), "square matrices"),
    "matrix not square": ("positive_definite", (2, 3), "square matrices"),
    "triangle of five": ("packed_cholesky", (5,), "1, 3, 6, 10"),
    "unknown word": ("positiv", (), "Did you mean 'positive'"),
    "limits missing": ("interval", (), "takes 2 number"),
    "limits too many": (("positive", 3.0), (), "takes 0 number"),
    "limits reversed": (("interval", 1.0, 0.0), (), "must end above its start"),
    "limits that do not fit": (("interval", [0.0, 1.0, 2.0], 5.0), (2,), "broadcast to its shape"),
    "limits of the wrong sign": (("interval", [0.0, np.inf], 5.0), (2,), "None for no limit"),
    "limit NaN": (("greater_than", np.nan), (), "finite"),
    "a number": (3.0, (), "got 3.0"),
    "NumPyro's sphere": (constraints.sphere, (3,), "not among those"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_constraint_is_explained(name, unhooked):
    spec, shape, words = BAD[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        read_constraint("theta", shape, spec)
    assert "'theta'" in str(caught.value)
    assert words in str(caught.value)


def test_infinite_limits_are_none():
    assert read_constraint("a", (), ("interval", -np.inf, np.inf)).kind == "real"
    assert read_constraint("a", (), ("interval", 0.0, np.inf)).kind == "positive"
    assert read_constraint("a", (), ("interval", -np.inf, 2.0)).kind == "less_than"
    assert read_constraint("a", (), ("interval", 0, 1)).kind == "unit_interval"
