"""The density of a sampler's own draws: against the change of variables by autodiff, and against its integral."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import pushforward as pf
from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Normal, NormalMixture, Uniform
from pushforward.networks import Identity, coupled, mlp, modulated
from pushforward.sampler import Sampler
from reproduce.noise import noise_head

pytestmark = pytest.mark.quick_compilation
KEY = jax.random.key(5)


def bent_frame(dim):
    rng = np.random.default_rng(dim)
    return Frame(
        centre=jnp.asarray(rng.normal(size=dim)),
        scale=jnp.asarray(rng.uniform(0.5, 2.0, dim)),
        bend=jnp.asarray([0.0, 0.7, 0.3, 0.0][:dim]),
        shift=jnp.asarray(0.1 * rng.normal(size=dim)),
        matrix=jnp.asarray(
            np.tril(0.3 * rng.normal(size=(dim, dim)), -1) + np.diag(rng.uniform(0.5, 1.5, dim))
        ),
    )


def moved(dim):
    """A coupled map that is not the identity."""
    keys = iter(jax.random.split(KEY, 100))
    return jax.tree.map(
        lambda a: a + 0.2 * jax.random.normal(next(keys), a.shape), coupled(KEY, dim, width=6, depth=1)
    )


def mixture(dim):
    rng = np.random.default_rng(dim)
    return NormalMixture(
        weights=jnp.asarray([0.3, 0.7]),
        means=jnp.asarray(rng.normal(size=(2, dim))),
        choleskys=jnp.asarray([np.eye(dim), 0.5 * np.eye(dim) + 0.1 * np.tril(np.ones((dim, dim)))]),
    )


def wells(dim):
    return IndependentMixtures(
        weights=jnp.asarray([[0.4, 0.6]] * dim),
        means=jnp.asarray([[-1.0, 1.0]] * dim),
        scales=jnp.asarray([[0.3, 0.5]] * dim),
    )


class Affine(eqx.Module):
    """A user's own map with an inverse."""

    slope: jax.Array
    in_size: int = eqx.field(static=True, default=1)
    out_size: int = eqx.field(static=True, default=1)

    def __call__(self, z):
        return self.slope * z + 1.0

    def value_and_log_det(self, z):
        return self(z), jnp.log(jnp.abs(self.slope))

    def inverse_and_log_det(self, x):
        return (x - 1.0) / self.slope, jnp.log(jnp.abs(self.slope))


MAPS = {
    "normal, four coordinates": lambda: Sampler(Normal(4), moved(4), bent_frame(4)),
    "mixture, two coordinates": lambda: Sampler(mixture(2), moved(2), bent_frame(2)),
    "wells, three coordinates": lambda: Sampler(wells(3), moved(3), bent_frame(3)),
    "untouched mixture": lambda: Sampler(mixture(3), Identity(3), bent_frame(3)),
    "a map of one's own": lambda: Sampler(Normal(1), Affine(jnp.asarray(-2.5)), bent_frame(1)),
}


@pytest.mark.parametrize("name", MAPS)
def test_it_is_the_change_of_variables(name, double):
    sampler = MAPS[name]()
    z = sampler.latent.sample(KEY, 20)
    x = jax.vmap(sampler)(z)
    expected = (
        jax.vmap(sampler.latent.log_density)(z) - jnp.linalg.slogdet(jax.vmap(jax.jacfwd(sampler))(z))[1]
    )
    np.testing.assert_allclose(jax.vmap(sampler.log_density)(x), expected, rtol=1e-9)
    assert np.abs(jax.vmap(sampler.log_density)(1.001 * x) - expected).max() > 1e-5  # planted


def test_of_a_known_law():
    """An affine map of a normal latent is normal."""
    sampler = Sampler(Normal(1), Affine(jnp.asarray(-2.5)), Frame.identity(1))
    for x in (-3.0, 0.2, 7.0):
        found = sampler.log_density(jnp.asarray([x]))
        np.testing.assert_allclose(found, norm.logpdf(x, 1.0, 2.5), rtol=1e-6)
    uniform = Sampler(Uniform(1), Affine(jnp.asarray(2.0)), Frame.identity(1))
    np.testing.assert_allclose(uniform.log_density(jnp.asarray([2.9])), np.log(0.25), rtol=1e-6)
    assert uniform.log_density(jnp.asarray([3.1])) == -np.inf


@pytest.mark.parametrize("name", ["a map of one's own", "mixture, two coordinates"])
def test_it_integrates_to_one(name):
    sampler = MAPS[name]()
    n = {1: 4001, 2: 1201}[sampler.dim]
    draws = np.asarray(sampler.sample(KEY, 20_000))
    axes = [np.linspace(np.median(c) - np.ptp(c), np.median(c) + np.ptp(c), n) for c in draws.T]
    points = jnp.stack(jnp.meshgrid(*map(jnp.asarray, axes), indexing="ij"), axis=-1).reshape(-1, sampler.dim)
    values = jax.lax.map(sampler.log_density, points, batch_size=100_000)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    np.testing.assert_allclose(np.sum(np.exp(np.asarray(values, np.float64))) * cell, 1.0, atol=2e-3)


def test_of_a_fitted_sampler_it_is_near_the_targets():
    """Up to a constant, which the target's own log density has not."""
    target = pf.targets.gaussian(dim=4)
    settings = pf.preset("kl", network="coupled", extra_latents=0, width=8, depth=1)
    sampler = pf.fit(KEY, target, settings=settings, steps=20, progress=False).sampler
    x = target.sample(KEY, 500)
    gap = jax.vmap(sampler.log_density)(x) - jax.vmap(target.log_density)(x)
    assert np.std(gap) < 0.3
    assert np.std(jax.vmap(target.log_density)(x)) > 1.0


def test_under_jit_vmap_and_grad():
    sampler = MAPS["mixture, two coordinates"]()
    x = sampler.sample(KEY, 7)
    one_by_one = np.stack([sampler.log_density(point) for point in x])
    np.testing.assert_allclose(jax.vmap(sampler.log_density)(x), one_by_one, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(sampler.log_density)(x[0]), one_by_one[0], rtol=1e-5)
    np.testing.assert_allclose(
        eqx.filter_jit(lambda s, x: s.log_density(x))(sampler, x[0]), one_by_one[0], rtol=1e-5
    )
    slope, step = jax.grad(sampler.log_density)(x[0]), 1e-2 * jnp.eye(2)
    differences = [(sampler.log_density(x[0] + e) - sampler.log_density(x[0] - e)) / 2e-2 for e in step]
    np.testing.assert_allclose(slope, differences, rtol=0.02, atol=0.02)
    weights = eqx.filter_grad(lambda s: s.log_density(x[0]))(sampler)
    assert max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(weights.network)) > 1e-3


def test_where_the_density_is_not_known(unhooked):
    free = Sampler(Normal(2), modulated(KEY, 2, width=4), bent_frame(2))
    with pytest.raises(TypeError, match=r"its map, Modulated, has no inverse.*network=\"coupled\""):
        free.log_density(jnp.zeros(2))
    with pytest.raises(TypeError, match="its map, MLP, has no inverse"):
        Sampler(Normal(2), mlp(KEY, 2, 2, width=4), bent_frame(2)).log_density(jnp.zeros(2))
    noisy = Sampler(Normal(4), noise_head(KEY, moved(2)), bent_frame(2))
    with pytest.raises(TypeError, match=r"noise head.*`reproduce\.noise\.log_density\(key, sampler, x\)`"):
        noisy.log_density(jnp.zeros(2))


def test_batches_are_mapped_over(unhooked):
    sampler = MAPS["mixture, two coordinates"]()
    with pytest.raises(
        ValueError,
        match=r"`x` must be one point of shape \(2,\); got shape \(5, 2\)\. Write `jax\.vmap\(sampler\.log_density\)\(x\)`",
    ):
        sampler.log_density(jnp.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"`x` must be one point of shape \(2,\); got shape \(3,\)\.$"):
        sampler.log_density(np.zeros(3))
    with pytest.raises(ValueError, match=r"`z` must be one latent.*Write `jax\.vmap\(sampler\)\(z\)`"):
        sampler(jnp.zeros((5, 2)))
