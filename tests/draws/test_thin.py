import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.draws import thin, thin_indices
from pushforward.kernels import IMQ
from pushforward.metrics import ksd_imq_v
from pushforward.targets import mog2, rosenbrock, squiggle


def discrepancy(draws, target, balance):
    """The definition: the squared KSD of some rows, plus `balance` times their squared MMD to all."""
    scores = jax.vmap(target.score)(draws)
    stein = np.asarray(IMQ().stein_gram(draws, draws, scores, scores), np.float64)
    x = np.asarray(draws, np.float64)
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    x = (x - middle) / (high - low) / np.sqrt(x.shape[1])
    plain = 1 / np.sqrt(1 + ((x[:, None] - x[None]) ** 2).sum(-1))

    def of(rows):
        pairs = np.ix_(rows, rows)
        mmd = plain[pairs].mean() - 2 * plain[rows].mean() + plain.mean()
        return stein[pairs].mean() + balance * mmd

    return of


def slow_thin(of, num_draws, num_points):
    """At each step, take the draw that keeps the discrepancy of the chosen set lowest."""
    chosen = []
    for _ in range(num_points):
        chosen.append(int(np.argmin([of([*chosen, i]) for i in range(num_draws)])))
    return chosen


def pool(target, n, seed=0):
    return target.sample(jax.random.key(seed), n)


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_thinning_is_its_definition(balance):
    target = squiggle()
    draws = pool(target, 60)
    chosen = thin_indices(draws, target, 12, sweeps=0, balance=balance)
    assert chosen.tolist() == slow_thin(discrepancy(draws, target, balance), 60, 12)
    assert jnp.array_equal(thin(draws, target, 12, sweeps=0, balance=balance), draws[chosen])


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_exchanges_are_their_definition(balance):
    """Each chosen point in turn gives way to the draw that, with all the others, does best."""
    target = squiggle()
    draws = pool(target, 60)
    of = discrepancy(draws, target, balance)
    chosen = slow_thin(of, 60, 12)
    for _ in range(2):
        for place in range(12):
            chosen = min(([*chosen[:place], i, *chosen[place + 1 :]] for i in range(60)), key=of)
    assert thin_indices(draws, target, 12, sweeps=2, balance=balance).tolist() == chosen


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_thinning_keeps_the_weights_of_far_modes(share):
    """The KSD alone is blind to them: without the balance, the shares are anyone's guess."""
    target = mog2()
    x = pool(target, 8000)
    left = x[:, 0] < 0
    rows = [x[side][: int(3000 * part)] for side, part in ((left, share), (~left, 1.0 - share))]
    draws = jnp.concatenate(rows)
    kept = thin(draws, target, 500)
    assert abs(jnp.mean(kept[:, 0] < 0) - share) < 0.02
    # The paper's SVGD has 0.044.
    assert ksd_imq_v(kept, target) < 0.02


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
    ours = thin_indices(draws, target, 20, sweeps=0, balance=0.0)
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
    with pytest.raises(ValueError, match="balance"):
        thin(pool(target, 10), target, 2, balance=-1.0)
    with pytest.raises(ValueError, match="shape"):
        thin(jnp.zeros((10, 3)), target, 2)
    with pytest.raises(ValueError, match="finite"):
        thin(pool(target, 10).at[0, 0].set(jnp.nan), target, 2)
