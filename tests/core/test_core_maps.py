"""Networks, latent laws and frames: what they start as, what they preserve, what they refuse."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.stats import qmc

from pushforward import latents
from pushforward.frame import Frame, InFrame
from pushforward.latents import IndependentMixtures, Normal, NormalMixture, Uniform
from pushforward.networks import (
    ACTIVATIONS,
    MLP,
    PIECEWISE_LINEAR,
    Modulated,
    coupled,
    mlp,
    modulated,
)
from pushforward.targets import Gaussian

pytestmark = pytest.mark.quick_compilation
KEY = jax.random.key(4)
MEANS = np.array([[0.0, 1.0], [2.0, -3.0], [-1.5, 0.5]])
CHOLESKYS = np.array([[[1.0, 0.0], [0.3, 0.7]], [[0.5, 0.0], [-0.2, 2.0]], [[0.2, 0.0], [0.1, 0.3]]])
WEIGHTS = np.array([0.2, 0.7, 0.1])


def mixture():
    return NormalMixture(*(jnp.asarray(a, float) for a in (WEIGHTS, MEANS, CHOLESKYS)))


# The second coordinate's components stand out of order.
COLUMNS = (
    np.array([[0.2, 0.7, 0.1], [0.5, 0.2, 0.3]]),
    np.array([[-2.0, 1.0, 1.5], [2.0, -3.0, 0.0]]),
    np.array([[0.5, 1.0, 0.2], [0.7, 0.4, 1.1]]),
)


def columns():
    return IndependentMixtures(*(jnp.asarray(a, float) for a in COLUMNS))


# Networks


REFERENCE = {
    "elu": lambda h: np.where(h > 0, h, np.expm1(h)),
    "gelu": lambda h: 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))),
    "leaky_relu": lambda h: np.where(h > 0, h, 0.2 * h),
    "relu": lambda h: np.maximum(h, 0),
    "silu": lambda h: h / (1 + np.exp(-h)),
    "squareplus": lambda h: 0.5 * (h + np.sqrt(h * h + 1) - 1),
    "tanh": np.tanh,
}


def test_every_activation_has_a_reference():
    assert REFERENCE.keys() == ACTIVATIONS.keys()


@pytest.mark.parametrize("name", REFERENCE)
def test_mlp_is_its_formula_and_every_parameter_counts(name):
    net = mlp(KEY, 3, 2, width=8, depth=2, activation=name)
    # Biases off zero, so that none of them can be forgotten.
    net = eqx.tree_at(lambda n: n.biases, net, tuple(b + 0.1 for b in net.biases))
    x = jax.random.normal(jax.random.key(5), (16, 3))
    outputs, slopes = jax.jit(jax.value_and_grad(lambda n: jnp.sum(jax.vmap(n)(x) ** 2)))(net)
    h = np.asarray(x, np.float64)
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        h = REFERENCE[name](h @ np.asarray(weight).T + np.asarray(bias))
    y = h @ np.asarray(net.weights[-1]).T + np.asarray(net.biases[-1])
    np.testing.assert_allclose(outputs, np.sum(y**2), rtol=1e-4)
    for slope in jax.tree.leaves(slopes):
        assert np.all(np.isfinite(slope))
        assert np.any(slope != 0)


def test_piecewise_linear_nets_have_no_second_derivative():
    # Weights are drawn on the host, outside of any program.
    nets = {name: mlp(KEY, 1, 1, width=8, depth=1, activation=name) for name in ACTIVATIONS}

    def seconds(x):
        return {
            name: jax.vmap(jax.grad(jax.grad(lambda x, n=n: n(x[None])[0])))(x) for name, n in nets.items()
        }

    for name, second in jax.jit(seconds)(jnp.linspace(-2, 2, 7)).items():
        assert np.all(second == 0) == (name in PIECEWISE_LINEAR), name


@pytest.mark.parametrize(("latent", "dim"), [(2, 2), (5, 2), (2, 5)])
def test_skip_adds_what_latent_and_draw_share(latent, dim):
    z = jax.random.normal(KEY, (latent,))
    shared = min(latent, dim)
    plain, skipping = (mlp(KEY, latent, dim, width=8, skip=skip)(z) for skip in (False, True))
    np.testing.assert_allclose(skipping[:shared], plain[:shared] + z[:shared], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(skipping[shared:], plain[shared:])
    identity = mlp(KEY, latent, dim, width=8, skip=True, zero_last=True)
    np.testing.assert_array_equal(identity(z)[:shared], z[:shared])
    np.testing.assert_array_equal(identity(z)[shared:], 0)


@pytest.mark.parametrize("dim", [1, 3])
def test_modulated_starts_as_the_identity_and_stretches_at_most_so_far(dim):
    net = modulated(KEY, dim, width=8)
    z = jax.random.normal(KEY, (20, dim))
    np.testing.assert_array_equal(jax.jit(jax.vmap(net))(z), z)
    assert (net.in_size, net.out_size) == (dim, dim)
    # Its formula, at weights that are not zero, and its gradients.
    key = jax.random.key(6)
    last = jax.random.normal(key, (2 * dim, 8))
    net = eqx.tree_at(lambda n: n.net.weights, net, (*net.net.weights[:-1], last))
    y, slopes = jax.jit(jax.value_and_grad(lambda n: jnp.sum(jax.vmap(n)(z) ** 2)))(net)
    inner = np.asarray(jax.vmap(net.net)(z), np.float64)
    wanted = z * np.exp(3 * np.tanh(inner[:, :dim] / 3)) + inner[:, dim:]
    np.testing.assert_allclose(y, np.sum(np.asarray(wanted) ** 2), rtol=1e-4)
    assert all(np.any(slope != 0) for slope in jax.tree.leaves(slopes))


@pytest.mark.parametrize("dim", [2, 5])
def test_coupled_knows_its_inverse_and_its_determinant(dim):
    net = coupled(KEY, dim, width=8)
    z = jax.random.normal(KEY, (20, dim))
    np.testing.assert_array_equal(jax.vmap(net)(z), z)
    lasts = tuple(0.5 * jax.random.normal(jax.random.key(i), (2 * dim, 8)) for i in range(len(net.nets)))
    net = eqx.tree_at(lambda n: tuple(each.weights[-1] for each in n.nets), net, lasts)
    u, log_det = jax.jit(jax.vmap(net.value_and_log_det))(z)
    # Where a layer shrinks much, a Jacobian of single precision is nearly singular: no reference.
    with jax.enable_x64(True):
        wide, points = jax.tree.map(lambda a: jnp.asarray(np.asarray(a), jnp.float64), (net, z))
        jacobians = np.asarray(jax.jit(jax.vmap(jax.jacfwd(wide)))(points))
    np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobians)[1], atol=1e-4)
    # Every coordinate moves every other.
    assert np.all(np.abs(jacobians).max(0) > 0)
    back, log_det_there = jax.jit(jax.vmap(net.inverse_and_log_det))(u)
    np.testing.assert_allclose(back, z, atol=1e-4)
    np.testing.assert_allclose(log_det_there, log_det, atol=1e-4)


def test_networks_refuse_what_does_not_chain():
    net = mlp(KEY, 2, 2, width=4, depth=1)
    with pytest.raises(ValueError, match="layers of an MLP must chain"):
        MLP((net.weights[0], net.weights[0].T[:, :3]), net.biases, "silu", False)
    with pytest.raises(ValueError, match="layers of an MLP must chain"):
        MLP(net.weights, net.biases[:1], "silu", False)
    with pytest.raises(ValueError, match="twice as many outputs"):
        Modulated(net)
    with pytest.raises(ValueError, match=r"`activation` must be one of.*got 'sillu'\. Did you mean 'silu'\?"):
        mlp(KEY, 2, 2, activation="sillu")
    for argument in ("width", "depth"):
        with pytest.raises(ValueError, match=rf"`{argument}` must be a positive integer; got 0"):
            mlp(KEY, 2, 2, **{argument: 0})


# Latents


def moments(latent):
    """Mean and covariance in closed form."""
    if isinstance(latent, NormalMixture):
        mean = WEIGHTS @ MEANS
        second = np.einsum("k,kij,klj->il", WEIGHTS, CHOLESKYS, CHOLESKYS)
        return mean, second + np.einsum("k,ki,kj->ij", WEIGHTS, MEANS, MEANS) - np.outer(mean, mean)
    if isinstance(latent, IndependentMixtures):
        weights, means, scales = COLUMNS
        mean = (weights * means).sum(1)
        return mean, np.diag((weights * (means**2 + scales**2)).sum(1) - mean**2)
    variance = 1.0 if isinstance(latent, Normal) else 1.0 / 3.0
    return np.zeros(latent.dim), variance * np.eye(latent.dim)


LATENTS = {"normal": lambda: Normal(2), "uniform": lambda: Uniform(2), "mixture": mixture, "columns": columns}


def worst_moment(z, latent):
    """The largest deviation of a sample moment from the truth, in standard errors."""
    mean, covariance = moments(latent)
    z, n = np.asarray(z, np.float64), len(z)
    products = np.einsum("ni,nj->nij", z - mean, z - mean).reshape(n, -1)
    gaps = np.concatenate([z - mean, products - covariance.ravel()], axis=1)
    return np.abs(gaps.mean(0) / (gaps.std(0) / np.sqrt(n))).max()


@pytest.mark.parametrize("name", LATENTS)
def test_latents_have_their_moments(name):
    """Six moments of four laws, each beyond 5 standard errors with probability 6e-7: one key in 70,000 fails."""
    latent = LATENTS[name]()
    z = np.asarray(latent.sample(jax.random.key(9), 20_000))
    assert worst_moment(z, latent) < 5
    # Planted: a shift of a twentieth of a standard deviation, and 5 % more width.
    mean, covariance = moments(latent)
    assert worst_moment(z + 0.05 * np.sqrt(np.diag(covariance)), latent) > 5
    assert worst_moment(mean + 1.05 * (z - mean), latent) > 5


@pytest.mark.parametrize("name", LATENTS)
def test_latents_fit_their_log_density(name):
    """Draws in the cells of a grid against the density integrated over them: Pearson's chi-square.

    It fails under a new key with probability 1e-5 for each of the four laws.
    """
    latent, n, step = LATENTS[name](), 20_000, 0.05
    # The midpoint rule: no node lies on the edge of the uniform's cube.
    middles = np.arange(-7, 7, step) + step / 2
    mesh = np.stack(np.meshgrid(middles, middles, indexing="ij"), -1).reshape(-1, 2)
    logs = jax.jit(jax.vmap(latent.log_density))(jnp.asarray(mesh, float))
    mass = np.exp(np.asarray(logs, np.float64)).reshape(280, 280) * step**2
    cells = mass.reshape(14, 20, 14, 20).sum((1, 3)).ravel()

    def p_value(z):
        edges = np.arange(-7, 8)
        counts = np.histogram2d(*np.asarray(z).T, bins=(edges, edges))[0].ravel()
        often = n * cells > 10
        # What is rare or outside is one more cell.
        counts, wanted = (np.append(a[often], n - a[often].sum()) for a in (counts, n * cells))
        return scipy.stats.chi2.sf(np.sum((counts - wanted) ** 2 / np.maximum(wanted, 1)), len(counts) - 1)

    z = latent.sample(jax.random.key(10), n)
    assert p_value(z) > 1e-5
    assert p_value(1.1 * z) < 1e-5  # planted: a tenth too wide


@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_one_dimensional_density_integrates_to_one(name):
    latent = {"normal": Normal, "uniform": Uniform}[name](1)
    grid = np.linspace(-12, 12, 4_801)
    density = np.exp(np.asarray(jax.vmap(latent.log_density)(jnp.asarray(grid[:, None], float)), np.float64))
    # The uniform's jump lies on the grid: the trapezoidal rule errs by one step of 0.005 there.
    np.testing.assert_allclose(np.trapezoid(density, grid), 1, atol=1e-5 if name == "normal" else 3e-3)


@pytest.mark.parametrize("name", LATENTS)
def test_uniforms_are_mapped_to_the_law(name):
    """A scrambled Sobol set has the moments to within 2e-3 of their scale; iid draws could not."""
    latent = LATENTS[name]()
    u = qmc.Sobol(latent.num_uniforms, rng=np.random.default_rng(1)).random(2**15)
    z = np.asarray(jax.jit(jax.vmap(latent.from_uniform))(jnp.asarray(u, float)), np.float64)
    mean, covariance = moments(latent)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((z.mean(0) - mean) / scale, 0, atol=2e-3)
    np.testing.assert_allclose((np.cov(z.T) - covariance) / np.outer(scale, scale), 0, atol=4e-3)
    # The edges of the cube give finite latents.
    corners = jnp.asarray([[0.0] * latent.num_uniforms, [1.0] * latent.num_uniforms])
    assert np.all(np.isfinite(jax.vmap(latent.from_uniform)(corners)))


def test_mixture_components_against_scipy(double):
    latent, z = mixture(), np.asarray(jax.random.normal(KEY, (10, 2))) * 2
    found = jax.jit(jax.vmap(latent.component_log_densities))(z)
    wanted = np.stack(
        [
            np.log(w) + scipy.stats.multivariate_normal(m, c @ c.T).logpdf(z)
            for w, m, c in zip(WEIGHTS, MEANS, CHOLESKYS, strict=True)
        ],
        axis=1,
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    np.testing.assert_allclose(
        jax.jit(jax.vmap(latent.log_density))(z), np.log(np.exp(wanted).sum(1)), rtol=1e-9
    )


def test_a_component_without_weight_is_never_drawn():
    latent = NormalMixture(
        jnp.asarray([0.0, 1.0, 0.0]), *(jnp.asarray(a, float) for a in (MEANS, 1e-3 * CHOLESKYS))
    )
    z, slope = jax.jit(lambda m: (latent.sample(KEY, 4_096), jax.grad(latent.log_density)(m)))(MEANS[1])
    np.testing.assert_allclose(z - MEANS[1], 0, atol=0.02)
    np.testing.assert_allclose(slope, 0, atol=1e-3)


def test_a_mixture_of_many_dimensions_draws_without_a_factor_for_each():
    dim, key = latents.FEW_DIMENSIONS + 1, jax.random.key(11)
    weights, shape = jnp.asarray(WEIGHTS, float), jnp.eye(dim)[None]
    # What the same key chooses, and where: seen where components share one shape, and no factor is needed.
    eps = NormalMixture(weights, jnp.zeros((3, dim)), shape).sample(key, 1000)
    levels = jnp.broadcast_to(jnp.arange(3.0)[:, None], (3, dim))
    chosen = np.rint(NormalMixture(weights, levels, shape).sample(key, 1000) - eps)[:, 0].astype(int)
    assert set(chosen) == {0, 1, 2}
    key_means, key_factors = jax.random.split(key)
    means = jax.random.normal(key_means, (3, dim))
    factors = jnp.tril(jax.random.normal(key_factors, (3, dim, dim)))
    expected = means[chosen] + jnp.einsum("nij,nj->ni", factors[chosen], eps)
    np.testing.assert_allclose(NormalMixture(weights, means, factors).sample(key, 1000), expected, atol=1e-4)


def test_components_that_share_one_shape_are_as_if_each_had_it():
    shape = jnp.asarray(CHOLESKYS[1:2], float)
    weights, means = jnp.asarray(WEIGHTS, float), jnp.asarray(MEANS, float)
    one, each = (NormalMixture(weights, means, s) for s in (shape, jnp.tile(shape, (3, 1, 1))))
    np.testing.assert_allclose(one.sample(KEY, 500), each.sample(KEY, 500), atol=1e-6)
    u = jax.random.uniform(KEY, (50, 2))
    for name in ("from_uniform", "component_log_densities", "log_density"):
        np.testing.assert_allclose(
            jax.vmap(getattr(one, name))(u), jax.vmap(getattr(each, name))(u), rtol=1e-5
        )


@pytest.mark.parametrize("law", [Normal, Uniform])
def test_latents_refuse_what_does_not_count(unhooked, law):
    for size in (0, -1):
        with pytest.raises(ValueError, match="must be a positive integer"):
            law(size)
    for size in (2.5, True, "3", None):
        with pytest.raises(TypeError, match="must be a positive integer"):
            law(size)


def test_mixtures_refuse_sizes_that_disagree(unhooked):
    with pytest.raises(ValueError, match="must agree in size"):
        NormalMixture(jnp.ones(2), *(jnp.asarray(a, float) for a in (MEANS, CHOLESKYS)))
    with pytest.raises(ValueError, match="must agree in size"):
        NormalMixture(*(jnp.asarray(a, float) for a in (WEIGHTS, MEANS, CHOLESKYS[:2])))


# Frames


def frame():
    return Frame(
        centre=jnp.asarray([1.0, -20.0, 0.3]),
        scale=jnp.asarray([0.3, 40.0, 1.0]),
        bend=jnp.asarray([0.0, 0.6, -1.1]),
        shift=jnp.asarray([0.1, -0.2, 0.0]),
        matrix=jnp.asarray([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.3, 0.4, 0.7]]),
    )


def test_frame_and_inverse(double):
    u = 2 * jax.random.normal(KEY, (50, 3))
    there = jax.jit(lambda u: jax.vmap(frame())(u))(u)
    back = jax.jit(lambda x: jax.vmap(frame().inverse)(x))(there)
    np.testing.assert_allclose(back, u, rtol=1e-9, atol=1e-9)
    # The formula, coordinate by coordinate.
    f = jax.tree.map(np.asarray, frame())
    v = f.shift + np.asarray(u) @ f.matrix.T
    bent = np.stack([v[:, 0], np.sinh(0.6 * v[:, 1]) / 0.6, np.sinh(1.1 * v[:, 2]) / 1.1], axis=1)
    np.testing.assert_allclose(there, f.centre + f.scale * bent, rtol=1e-12)


def test_frame_log_det_is_that_of_its_jacobian(double):
    u = 2 * jax.random.normal(KEY, (50, 3))
    found, jacobians = jax.jit(lambda u: (jax.vmap(frame().log_det)(u), jax.vmap(jax.jacfwd(frame()))(u)))(u)
    np.testing.assert_allclose(found, np.linalg.slogdet(jacobians)[1], rtol=1e-9)
    # Planted: the determinant of the matrix alone misses the bend.
    assert np.abs(found - np.log(0.3 * 40 * 1.4)).max() > 0.1


def test_identity_frame_changes_nothing():
    u = jnp.asarray([0.5, -3.0])
    np.testing.assert_array_equal(Frame.identity(2)(u), u)
    np.testing.assert_array_equal(Frame.identity(2).inverse(u), u)
    np.testing.assert_allclose(Frame.identity(2).log_det(u), 0, atol=1e-7)


def test_frame_far_out_stays_finite():
    """log cosh is taken without overflow."""
    assert np.isfinite(frame().log_det(jnp.asarray([1e4, 1e4, -1e4])))


def test_target_in_a_frame_keeps_its_mass(double):
    """Change of variables: the integral of the density does not depend on the coordinates."""
    target = Gaussian([2.0], [[0.7]])
    one = Frame(*(jnp.asarray([a]) for a in (1.0, 0.4, 0.8, 0.3)), matrix=jnp.asarray([[1.7]]))
    grid = np.linspace(-6, 6, 4_001)
    framed = InFrame(target, one)
    density = np.exp(jax.jit(jax.vmap(framed.log_density))(grid[:, None]))
    np.testing.assert_allclose(np.trapezoid(density, grid), np.exp(target.log_z), rtol=1e-8)
    assert (framed.dim, framed.name) == (1, "gaussian")


def test_score_in_a_frame_is_the_chain_rule(double):
    target = Gaussian([1.0, -3.0, 0.0], np.diag([2.0, 90.0, 0.5]))
    u = jnp.asarray([0.3, -0.8, 0.5])
    f = frame()

    @jax.jit
    def both(u):
        by_hand = jax.jacfwd(f)(u).T @ target.score(f(u)) + jax.grad(f.log_det)(u)
        return InFrame(target, f).score(u), by_hand

    np.testing.assert_allclose(*both(u), rtol=1e-9)


def test_frames_refuse_sizes_that_disagree(unhooked):
    with pytest.raises(ValueError, match="must agree in size"):
        Frame(jnp.zeros(2), jnp.ones(3), jnp.zeros(3), jnp.zeros(3), jnp.eye(3))
