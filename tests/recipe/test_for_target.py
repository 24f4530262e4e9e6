"""A target fills what a user left open, once; what the user set stays set, in every dimension."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pushforward as pf
from pushforward.frame import Frame
from pushforward.latents import standard
from pushforward.networks import Coupled
from pushforward.recipe import methods
from pushforward.recipe.methods import for_target
from pushforward.recipe.necks import neck_map
from pushforward.recipe.parts import build_parts
from pushforward.recipe.state import State
from pushforward.run.clock import Clock
from pushforward.targets import funnel_nd

pytestmark = pytest.mark.quick_compilation

DIMS = (2, 10, 50, 200)
SET = {"learning_rate": 1e-2, "depth": 4, "network": "modulated", "activation": "tanh", "batch_size": 96}


def normal(dim):
    return pf.Target.from_log_density(lambda x: -0.5 * jnp.sum(x**2), dim=dim, name="normal")


def filled(dim, **changes):
    return for_target(methods.Default(**changes).recipe, normal(dim))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize(
    "names", [("learning_rate", "depth", "network", "activation"), *((name,) for name in SET)]
)
def test_what_is_set_stays_set(dim, names):
    wanted = {name: SET[name] for name in names}
    training = filled(dim, **wanted).training
    assert {name: getattr(training, name) for name in names} == wanted
    # As settings of their own, too.
    assert for_target(pf.Recipe(training=pf.preset("default", **wanted)), normal(dim)).training == training


@pytest.mark.parametrize("dim", DIMS)
def test_what_is_open_is_filled_once(dim):
    recipe = filled(dim)
    for name in SET:
        assert getattr(recipe.training, name) is not None
    assert for_target(recipe, normal(dim)) == recipe
    assert for_target(recipe, normal(dim)).digest() == recipe.digest()
    # Nor does another target change what a first one has filled.
    assert for_target(recipe, normal(3)) == recipe


@pytest.mark.parametrize("name", methods.METHODS)
def test_methods_of_the_paper_leave_nothing_to_the_dimension_of_a_target(name):
    training = methods.METHODS[name].recipe.training
    if name not in ("default", "annealed"):
        assert for_target(pf.Recipe(training=training), normal(50)).training == training


def test_particles_that_are_asked_for_are_kept():
    assert filled(50, **{"annealing.num_particles": 96}).annealing.num_particles == 96


def hidden(network):
    """The widths of all hidden layers, and what they apply."""
    nets = network.nets if isinstance(network, Coupled) else (network,)
    return {len(bias) for net in nets for bias in net.biases[:-1]}, {net.activation for net in nets}


@pytest.mark.parametrize("width", [24, 128])
def test_the_width_asked_for_is_the_width_of_the_map_of_particles(width):
    recipe = filled(10, width=width, depth=3, activation="tanh")
    sizes = recipe.maps.sizes(recipe.training)
    assert sizes == {"width": width, "depth": 3, "activation": "tanh"}
    # Where the network to train is no coupled one, the map is as wide all the same.
    assert filled(10, width=width, network="modulated").maps.sizes(recipe.training)["width"] == width


@pytest.fixture(scope="module")
def narrow():
    """The map along the neck of a funnel, as wide as it needs to be."""
    return neck_map(
        np.asarray(funnel_nd(24).sample(jax.random.key(0), 4096)), filled(24), white=False
    ).network


@pytest.mark.parametrize("width", [64, 128])
def test_the_width_asked_for_is_the_width_of_the_map_along_necks(narrow, width):
    found = parts_of(filled(24, width=width), 24, narrow).network
    assert hidden(found) == ({width}, {"silu"})
    z = jax.random.normal(jax.random.key(2), (64, 24))
    np.testing.assert_allclose(jax.vmap(found)(z), jax.vmap(narrow)(z), rtol=1e-4, atol=1e-4)


def parts_of(recipe, dim, network=None):
    return build_parts(
        jax.random.key(2), normal(dim), recipe.training, mixture=standard(dim),
        draws=jax.random.normal(jax.random.key(3), (64, dim)), network=network,
    )  # fmt: skip


def test_a_map_too_narrow_for_a_neck_says_so(narrow):
    with pytest.warns(UserWarning, match="begins at the identity"):
        assert hidden(parts_of(filled(24, width=8), 24, narrow).network) == ({8}, {"silu"})


def test_the_activation_asked_for_is_not_given_up_for_the_map_along_necks(narrow):
    recipe = filled(24, activation="tanh")
    with pytest.warns(UserWarning, match="begins at the identity"):
        assert hidden(parts_of(recipe, 24, narrow).network) == ({64}, {"tanh"})


def step_sizes(beta2):
    """Lengths of two steps of the optimiser, the second after a gradient that fell to a hundredth."""
    recipe = filled(2, width=4, beta2=beta2)
    optimiser = parts_of(recipe, 2).optimiser
    state, sizes = optimiser.init(jnp.ones(())), []
    for gradient in (1.0, 0.01):
        update, state = optimiser.update(jnp.asarray(gradient), state, jnp.ones(()))
        sizes.append(float(update))
    return sizes


@pytest.mark.parametrize("beta2", [0.9, 0.99, 0.999])
def test_adams_second_decay_is_a_setting(beta2):
    training = filled(2).training
    plain = optax.adam(
        optax.cosine_decay_schedule(training.learning_rate, training.num_steps, alpha=training.final_rate),
        b1=training.beta1, b2=beta2,
    )  # fmt: skip
    state, wanted = plain.init(jnp.ones(())), []
    for gradient in (1.0, 0.01):
        update, state = plain.update(jnp.asarray(gradient), state)
        wanted.append(float(update))
    np.testing.assert_allclose(step_sizes(beta2), wanted, rtol=1e-5)
    # The score net's optimiser has it as well.
    kl = pf.preset("kl", frame="identity", extra_latents=0, width=4, beta2=beta2)
    score = build_parts(jax.random.key(0), normal(2), kl).score_optimiser
    second = jax.tree.leaves(score.update(jnp.ones(()), score.init(jnp.ones(())), jnp.ones(()))[1])
    assert any(np.allclose(leaf, 1.0 - beta2, rtol=1e-3) for leaf in second)


def test_maps_of_particles_are_as_asked_for():
    """The stage itself: a map of draws is as wide and as deep as the network that is trained."""
    recipe = filled(5, width=12, depth=3).replace(
        annealing={"num_particles": 32},
        maps={"rounds": 1, "steps_first": 1, "steps_to_choose": 1, "batch_size": 8},
    )
    law = standard(5)
    state = State(
        target=normal(5),
        frame=Frame.identity(5),
        latent=law,
        draws=law.sample(jax.random.key(0), 128),
        log_z=0.0,
    )
    *_, last = methods.MAPS.run(jax.random.key(1), state, recipe, Clock(recipe))
    assert hidden(last.network) == ({12}, {"silu"})
    assert {len(net.weights) for net in last.network.nets} == {4}
    begun = parts_of(recipe, 5, last.network).network
    assert eqx.tree_equal(begun, last.network)
