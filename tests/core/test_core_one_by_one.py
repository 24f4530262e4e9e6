import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.frame import Frame, InFrame
from pushforward.operations import OneByOne, equations, one_by_one
from pushforward.targets import gaussian, rosenbrock

pytestmark = pytest.mark.quick_compilation

POINTS = jnp.linspace(0.0, 1.0, 12)
X = 0.5 * jax.random.normal(jax.random.key(0), (20, 3))


def process(x):
    apart = (POINTS[:, None] - POINTS[None]) / jnp.exp(x[0])
    covariance = jnp.exp(x[1] - 0.5 * apart**2) + (0.1 + jnp.exp(x[2])) * jnp.eye(12)
    factor = jnp.linalg.cholesky(covariance)
    white = jax.scipy.linalg.solve_triangular(factor, jnp.sin(6 * POINTS), lower=True)
    return -jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * jnp.sum(white**2) - 0.5 * jnp.sum(x**2)


PLAIN = pf.Target.from_log_density(process, dim=3)
SEEN = one_by_one(PLAIN)


def test_only_targets_that_solve_are_seen_so():
    assert isinstance(SEEN, OneByOne)
    assert one_by_one(SEEN) is SEEN
    for target in (gaussian(), rosenbrock()):
        assert one_by_one(target) is target


def test_it_is_the_same_density():
    assert (SEEN.dim, SEEN.name, SEEN.parameters) == (PLAIN.dim, PLAIN.name, PLAIN.parameters)
    both = [eqx.filter_jit(jax.vmap(jax.value_and_grad(t.log_density)))(X) for t in (SEEN, PLAIN)]
    for ours, theirs in zip(*both, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jax.vmap(SEEN.log_density)(X), both[1][0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(SEEN.hessian(X[0]), jax.hessian(process)(X[0]), rtol=1e-3, atol=1e-3)


def test_no_batch_of_equations_is_left():
    def solves(target):
        # As training sees it: inside of a frame, vectorised twice, differentiated.
        framed = InFrame(target, Frame.identity(3))
        points = X.reshape(4, 5, 3)
        program = jax.make_jaxpr(jax.vmap(jax.vmap(jax.value_and_grad(framed.log_density))))(points)
        names = ("cholesky", "triangular_solve")
        return [e.invars[0].aval.ndim for e, _ in equations(program.jaxpr) if e.primitive.name in names]

    assert set(solves(SEEN)) == {2}
    assert max(solves(PLAIN)) == 4


def test_an_objective_of_one_derivative_is_trained_so():
    seen = []

    def look(key, state, recipe, clock):
        seen.append(state.target)
        raise ZeroDivisionError
        yield

    stage = pf.Stage("look", lambda state, recipe: True, look)
    for method in ("default", "kl", "fisher"):
        with pytest.raises(ZeroDivisionError):
            pf.fit(
                jax.random.key(0),
                PLAIN,
                method=pf.methods.make(method).replace(stages=(stage,)),
                progress=False,
            )
    assert [isinstance(target, OneByOne) for target in seen] == [True, True, False]
