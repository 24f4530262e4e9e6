"""An index beyond an array: JAX clamps it in silence, and the density would be another one."""

import jax
import jax.numpy as jnp
import pytest

import pushforward as pf


@pytest.mark.parametrize(
    "density",
    [lambda x: -(x[5] ** 2) - x[0] ** 2, lambda x: -jnp.sum(x**2) + jnp.zeros(3)[jnp.array([0, 4])].sum()],
)
def test_an_index_beyond_the_end_is_refused_by_name(density):
    target = pf.Target.from_log_density(density, dim=2)
    with pytest.raises(ValueError, match=r"index beyond the end of an array.*`dim=2`"):
        pf.fit(jax.random.key(0), target, progress=False)


def test_indices_inside_are_fine():
    target = pf.Target.from_log_density(lambda x: -(x[-1] ** 2) - x[jnp.array([0, 1])][0] ** 2, dim=2)
    assert "index" not in str(pf.check_target(target))
