import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward import targets
from reproduce.metrics.distances import mean_error, sd_ratio
from reproduce.rivals import flow

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def small():
    return flow.algorithm(targets.gaussian(), batch_size=256, learning_rate=5e-3, num_blocks=3, width=16)


def parameters(state):
    return sum(leaf.size for leaf in jax.tree.leaves(state.trained))


def test_paper_sizes_give_the_counted_parameters():
    # facts 4.1: three blocks of one 1-200-200-200-2 net.
    algorithm = flow.algorithm(targets.gaussian())
    assert parameters(eqx.filter_eval_shape(algorithm.init, KEY)) == 243_606


def test_training_lowers_the_loss_to_minus_log_z(small, start, run):
    # Reverse KL is the loss plus log Z: zero at best. Bounds are wide: 256 draws a step.
    target = targets.gaussian()
    state, info = run(KEY, small, 300)
    kl = info["loss"] + target.log_z
    assert jnp.mean(kl[-50:]) < 0.1 * jnp.mean(kl[:5])
    assert abs(jnp.mean(kl[-50:])) < 0.05
    draws = small.sample(KEY, state, 4000)
    assert draws.shape == (4000, 2)
    assert np.all(np.abs(mean_error(draws, target)) < 0.15)
    assert np.all(np.abs(sd_ratio(draws, target) - 1) < 0.15)
    # Without training, the same bounds fail.
    untrained = small.sample(KEY, start(KEY, small), 4000)
    assert np.any(np.abs(mean_error(untrained, target)) > 0.15)


def test_permutations_are_kept_but_not_trained():
    # From three dimensions on FlowJAX shuffles by integer arrays, which have no gradient.
    algorithm = flow.algorithm(targets.gaussian(5), batch_size=16)
    before = eqx.filter_eval_shape(algorithm.init, KEY)
    after, _ = eqx.filter_eval_shape(algorithm.step, KEY, before)
    assert all(leaf.dtype == jnp.int32 for leaf in jax.tree.leaves(before.fixed))
    assert len(jax.tree.leaves(before.fixed)) == 2
    assert jax.tree.structure(before) == jax.tree.structure(after)


def test_state_is_arrays_alone_and_the_key_decides(small, start):
    one, two, other = (start(jax.random.key(k), small) for k in (0, 0, 1))
    assert all(eqx.is_array(leaf) for leaf in jax.tree.leaves(one))
    assert eqx.tree_equal(one, two)
    assert not eqx.tree_equal(one, other)


def test_one_coordinate_is_refused():
    with pytest.raises(ValueError, match=r"at least 2 coordinates.*got dim 1"):
        flow.algorithm(targets.gaussian(1))
