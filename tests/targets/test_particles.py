"""DW-4 and LJ-13 against plain loops, known minima and their symmetries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from reproduce.targets import DoubleWellParticles, LennardJones, dw4, lj13
from reproduce.targets.particles import CORE, pair_distances

CLUSTERS = {"dw4": dw4, "lj13": lj13}


def loop_energy(target, x):
    """The energy by two nested loops in double precision."""
    positions = np.asarray(x, np.float64).reshape(target.num_particles, target.space)
    total = 0.0
    for i in range(len(positions)):
        for j in range(i):
            r = np.linalg.norm(positions[i] - positions[j])
            if target.name == "dw4":
                total += 0.9 * (r - 4.0) ** 4 - 4.0 * (r - 4.0) ** 2
            else:
                total += 2.0 * (r**-12.0 - 2.0 * r**-6.0)
    if target.name == "lj13":
        total += 0.5 * np.sum((positions - positions.mean(0)) ** 2)
    return total


def spread_out(target, seed):
    """A configuration without overlaps: a jittered grid."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(target.num_particles ** (1 / target.space)))
    grid = np.stack(np.meshgrid(*[np.arange(side)] * target.space), -1).reshape(-1, target.space)
    gap = 3.0 if target.name == "dw4" else 1.1
    return (
        gap * grid[: target.num_particles] + rng.normal(0, 0.05, (target.num_particles, target.space))
    ).ravel()


@pytest.mark.parametrize("name", CLUSTERS)
def test_energy_against_loops(name):
    target = CLUSTERS[name]()
    x = spread_out(target, 1)
    assert float(target.energy(jnp.asarray(x, float))) == pytest.approx(loop_energy(target, x), rel=1e-4)
    centre = x.reshape(-1, target.space).mean(0)
    expected = -loop_energy(target, x) - 0.5 * target.num_particles * centre @ centre
    assert float(target.log_density(jnp.asarray(x, float))) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", CLUSTERS)
def test_symmetries(name):
    with jax.enable_x64(True):
        target = CLUSTERS[name]()
        x = spread_out(target, 2).reshape(-1, target.space)
        rng = np.random.default_rng(3)
        turn, _ = np.linalg.qr(rng.normal(size=(target.space,) * 2))
        exchange = rng.permutation(len(x))
        images = [x @ turn.T, x[exchange], -x]
        value = target.log_density(jnp.asarray(x.ravel()))
        for image in images:
            np.testing.assert_allclose(target.log_density(jnp.asarray(image.ravel())), value, rtol=1e-10)
        # A shift of the whole leaves the energy alone and moves the centre out of its normal law.
        moved = jnp.asarray((x + 1.7).ravel())
        np.testing.assert_allclose(target.energy(moved), target.energy(jnp.asarray(x.ravel())), rtol=1e-9)
        assert float(target.log_density(moved)) < float(value)


def icosahedron():
    """The centre and the twelve corners at distance one from it."""
    golden = (1 + 5**0.5) / 2
    corners = [np.roll([0.0, a, b * golden], k) for a in (-1, 1) for b in (-1, 1) for k in range(3)]
    return np.vstack([np.zeros(3), np.array(corners) / np.hypot(1, golden)])


def test_the_icosahedron_has_the_known_energy_of_lj13():
    # Hoare and Pal (1971): -44.326801 well depths, each pair counted once, no harmonic well.
    with jax.enable_x64(True):
        target = LennardJones(strength=1.0)

        def pairs_only(radius):
            x = radius * icosahedron()
            return float(target.energy(jnp.asarray(x.ravel()))) - 0.5 * np.sum(x**2)

        best = scipy.optimize.minimize_scalar(pairs_only, bounds=(0.8, 1.2), method="bounded").fun
    assert best == pytest.approx(-44.326801, abs=1e-5)
    # The default counts every pair twice, as the usual reference draws do.
    x = jnp.asarray(icosahedron().ravel(), float)
    doubled = 2 * float(LennardJones(strength=1.0).energy(x)) - 0.5 * 12
    assert float(lj13().energy(x)) == pytest.approx(doubled, rel=1e-4)


def test_two_particles_on_a_line_have_the_double_wells_law():
    # x = c -+ r/2: Z = sqrt(2 pi / 2) times the integral over r of either sign.
    target = DoubleWellParticles(2, 1)
    r = np.linspace(-8, 8, 4001)
    gap = np.abs(r) - 4.0
    along = np.exp(-(0.9 * gap**4 - 4.0 * gap**2)).sum() * (r[1] - r[0])
    side = np.linspace(-9, 9, 1201)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2).astype(np.float32)
    total = np.exp(np.asarray(jax.jit(jax.vmap(target.log_density))(grid), np.float64)).sum()
    assert total * (side[1] - side[0]) ** 2 == pytest.approx(np.sqrt(np.pi) * along, rel=1e-3)


def test_temperature_divides_the_energy():
    x = jnp.asarray(spread_out(lj13(), 4), float)
    held = lj13().log_density(x) + lj13().energy(x)
    hot = LennardJones(temperature=2.0)
    np.testing.assert_allclose(hot.log_density(x), held - 0.5 * lj13().energy(x), rtol=1e-4)


def test_particles_that_meet_have_a_finite_energy_and_score():
    for target in (dw4(), lj13()):
        x = jnp.zeros(target.dim).at[-1].set(2.0)
        assert np.isfinite(target.log_density(x))
        assert np.isfinite(target.score(x)).all()
    with jax.enable_x64(True):
        # Value and slope go on smoothly where the straight line begins.
        pair = LennardJones(2, 1, strength=1.0)
        at = [jnp.array([0.0, CORE + step]) for step in (-1e-9, 1e-9)]
        np.testing.assert_allclose(*[pair.log_density(x) for x in at], rtol=1e-6)
        np.testing.assert_allclose(*[pair.score(x) for x in at], rtol=1e-6)


def test_pair_distances_and_bad_arguments():
    np.testing.assert_allclose(pair_distances(jnp.array([0.0, 0.0, 3.0, 4.0]), 2, 2), [5.0])
    for arguments in ({"temperature": 0.0}, {"num_particles": 1}, {"strength": -1.0}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            LennardJones(**arguments)
