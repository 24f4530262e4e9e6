import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.draws import thin, thin_indices
from pushforward.kernels import IMQ
from pushforward.metrics import ksd_imq_v
from pushforward.targets import rosenbrock, squiggle


def slow_thin(draws, scores, num_points):
    """The definition, pair by pair: at each step, the draw that keeps the KSD of the chosen set lowest."""
    table = np.asarray(IMQ().stein_gram(draws, draws, scores, scores), np.float64)
    chosen = []
    for _ in range(num_points):
        trials = [table[np.ix_([*chosen, i], [*chosen, i])].sum() for i in range(len(draws))]
        chosen.append(int(np.argmin(trials)))
    return chosen


def pool(target, n, seed=0):
    return target.sample(jax.random.key(seed), n)


def test_thinning_is_its_definition():
    target = squiggle()
    draws = pool(target, 60)
    chosen = thin_indices(draws, target, 12, sweeps=0)
    assert chosen.tolist() == slow_thin(draws, jax.vmap(target.score)(draws), 12)
    assert jnp.array_equal(thin(draws, target, 12, sweeps=0), draws[chosen])


def test_exchanges_are_their_definition():
    """Each chosen point in turn gives way to the draw that, with all the others, has the lowest KSD."""
    target = squiggle()
    draws = pool(target, 60)
    scores = jax.vmap(target.score)(draws)
    table = np.asarray(IMQ().stein_gram(draws, draws, scores, scores), np.float64)
    chosen = slow_thin(draws, scores, 12)
    for _ in range(2):
        for place in range(12):
            sets = [[*chosen[:place], i, *chosen[place + 1 :]] for i in range(len(draws))]
            chosen = min(sets, key=lambda rows: table[np.ix_(rows, rows)].sum())
    assert thin_indices(draws, target, 12, sweeps=2).tolist() == chosen


def test_a_sweep_lowers_the_discrepancy():
    target = squiggle()
    draws = pool(target, 4000)
    published, swept = (ksd_imq_v(thin(draws, target, 100, sweeps=n), target) for n in (0, 1))
    assert swept < 0.75 * published


def test_thinning_agrees_with_its_authors_code():
    from stein_thinning import thinning as reference

    target = rosenbrock()
    draws = pool(target, 400)
    scores = np.asarray(jax.vmap(target.score)(draws), np.float64)
    # With `id` for a preconditioner its kernel is ours: c = 1, beta = -1/2.
    theirs = reference.thin(np.asarray(draws, np.float64), scores, 20, preconditioner="id", standardize=False)
    ours = thin_indices(draws, target, 20, sweeps=0)
    assert np.asarray(theirs).tolist() == ours.tolist()


def test_thinned_draws_score_below_independent_ones_of_their_number():
    target = rosenbrock()
    draws = pool(target, 4000)
    assert ksd_imq_v(thin(draws, target, 100), target) < 0.4 * ksd_imq_v(draws[:100], target)


def test_thinning_mends_a_pool_that_is_off():
    target = squiggle()
    shifted = pool(target, 4000) + jnp.array([0.3, 0.0])
    kept = thin(shifted, target, 200)
    assert ksd_imq_v(kept, target) < 0.3 * ksd_imq_v(shifted[:200], target)


def test_a_draw_without_a_finite_score_is_never_chosen():
    target = squiggle()
    draws = pool(target, 50).at[3].set(jnp.finfo(jnp.float32).max)
    assert 3 not in thin_indices(draws, target, 20).tolist()


def test_arguments_are_checked():
    target = squiggle()
    with pytest.raises(ValueError, match="num_points"):
        thin(pool(target, 10), target, 0)
    with pytest.raises(ValueError, match="sweeps"):
        thin(pool(target, 10), target, 2, sweeps=-1)
    with pytest.raises(ValueError, match="shape"):
        thin(jnp.zeros((10, 3)), target, 2)
    with pytest.raises(ValueError, match="finite"):
        thin(pool(target, 10).at[0, 0].set(jnp.nan), target, 2)
