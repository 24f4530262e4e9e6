"""Bad arguments are refused in words, and wrappers are targets too."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from reproduce.targets import Donut, StudentTMixture, many_well, phi4, student_t


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: targets.Gaussian([[0.0]], [[1.0]]), r"`mean` must have shape \(dim,\)"),
        (lambda: targets.Gaussian([np.nan], [[1.0]]), r"`mean` must be finite; got \[nan\]"),
        (lambda: targets.Gaussian([0.0], [[np.inf]]), "`covariance` must be finite"),
        (lambda: targets.Mixture([1.0], [[np.nan]], [[[1.0]]]), "`means` must be finite"),
        (lambda: targets.Gaussian([0.0, 0.0]), "Exactly one of .* got neither"),
        (lambda: targets.Gaussian([0.0], [[1.0]], precision=[[1.0]]), "got both"),
        (lambda: targets.Gaussian([0.0, 0.0], [1.0, 1.0]), r"must have shape \(2, 2\); got \(2,\)"),
        (lambda: targets.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "must be symmetric"),
        (
            lambda: targets.Gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]),
            "`covariance` must be positive definite; its smallest eigenvalue is -1",
        ),
        (
            lambda: targets.Gaussian([0.0, 0.0], precision=[[0.0, 0.0], [0.0, 1.0]]),
            "`precision` must be positive definite",
        ),
        (
            lambda: targets.correlated_gaussian(jax.random.key(0), 3, 0.5),
            "`condition_number` must be at least 1",
        ),
        (lambda: targets.Mixture([1.0], [0.0, 1.0], [[[1.0]]]), r"`means` must have shape"),
        (lambda: targets.Mixture([1.0], [[0.0], [1.0]], [[[1.0]]] * 2), "one per row of `means`"),
        (lambda: targets.Mixture([1.0, 0.0], [[0.0], [1.0]], [[[1.0]]] * 2), "above 0"),
        (lambda: targets.Mixture([1.0], [[0.0]], [[1.0]]), r"shape \(1, 1, 1\)"),
        (
            lambda: targets.Mixture([1.0, 1.0], [[0.0], [1.0]], [[[1.0]], [[-1.0]]]),
            r"`covariances\[1\]` must be positive definite",
        ),
        (lambda: student_t(0.0), "`df` must be a finite number above 0; got 0.0"),
        (lambda: student_t(-1.0), "`df` must be"),
        (lambda: StudentTMixture(3.0, [1.0], [[0.0]], scale=-1.0), "`scale` must be a finite number above 0"),
        (lambda: student_t(dim=0), "`dim` must be"),
        (lambda: StudentTMixture(-2.0, [1.0], [[0.0]]), "`df` must be"),
        (lambda: Donut(ring=0.0), "`ring` must be"),
        (lambda: many_well(5), "`dim` must be even"),
        (lambda: targets.funnel_nd(1), "`dim` must be an integer of at least 2"),
        (lambda: phi4(lam=0.0), "`lam` must be"),
        (lambda: targets.get("nonsense"), "`name` must be one of banana, .*; got 'nonsense'"),
        (lambda: targets.Tempered(targets.mog2(), -0.5), "`inverse_temperature` must be"),
        (lambda: targets.Tempered(targets.mog2(), 1.5, targets.gaussian()), "at most 1"),
        (
            lambda: targets.Tempered(targets.mog2(), 0.5, targets.gaussian(3)),
            "`base` must have the target's dimension, 2; got 3",
        ),
    ],
)
def test_bad_arguments(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_tempered_is_a_target_between_two():
    target, base = targets.rosenbrock(), targets.gaussian()
    x = jnp.array([0.3, -0.8])
    for b in [0.0, 0.25, 1.0]:
        tempered = targets.Tempered(target, b, base)
        blend = (1 - b) * base.score(x) + b * target.score(x)
        np.testing.assert_allclose(tempered.score(x), blend, rtol=1e-5)
    flat = targets.Tempered(target, 0.25)
    np.testing.assert_allclose(flat.log_density(x), 0.25 * target.log_density(x), rtol=1e-6)
    assert (flat.dim, flat.name) == (2, "tempered_rosenbrock")


def test_a_schedule_does_not_compile_again():
    traces = []

    @eqx.filter_jit
    def evaluate(target, x):
        traces.append(target.name)
        return target.log_density(x)

    first = targets.Tempered(targets.rosenbrock(), 0.5, targets.gaussian())
    moved = eqx.tree_at(lambda t: t.inverse_temperature, first, jnp.asarray(0.75, jnp.float32))
    for target in [first, moved, targets.Tempered(targets.rosenbrock(), 0.9, targets.gaussian())]:
        evaluate(target, jnp.zeros(2))
    assert len(traces) == 1


def test_precision_and_covariance_say_the_same():
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    one = targets.Gaussian([1.0, -1.0], covariance)
    other = targets.Gaussian([1.0, -1.0], precision=np.linalg.inv(covariance))
    x = jnp.array([0.2, 0.4])
    for a, b in [
        (one.log_density(x), other.log_density(x)),
        (one.log_z, other.log_z),
        (one.covariance, other.covariance),
        (other.scale @ other.scale.T, covariance),
    ]:
        np.testing.assert_allclose(a, b, rtol=1e-5)
