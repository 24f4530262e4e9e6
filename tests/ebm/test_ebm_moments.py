"""The moments that lead an image sampler, against the Fréchet distance that they stand for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pushforward.files import BadFileError
from reproduce.images import generator, kinds_of, unet, with_shares
from reproduce.metrics.frechet import fid
from reproduce.studies.ebm.kinds import Teacher, sorted_into_kinds
from reproduce.studies.ebm.moments import (
    LEVELS,
    Lead,
    Moments,
    features_of,
    first_lead,
    followed,
    optimal_matrix,
    surrogate,
)
from reproduce.studies.ebm.noise import noisy

KEY = jax.random.key(0)


def moments_of(u):
    return Moments(jnp.mean(u, axis=0), u.T @ u / len(u))


def flat(x):
    return x.reshape(-1)


def draws(seed, n=400):
    """Skewed rows, with another mean and other correlations for every seed."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.exponential(size=(n, 4)) @ rng.normal(size=(4, 4)) + rng.normal(size=4), np.float32)


def test_the_matrix_takes_one_covariance_to_the_other():
    ours, theirs = moments_of(draws(1)), moments_of(draws(2))
    a = np.asarray(optimal_matrix(ours, theirs), np.float64)
    np.testing.assert_allclose(a, a.T, atol=1e-4)
    assert np.linalg.eigvalsh(a).min() > 0
    np.testing.assert_allclose(a @ np.asarray(ours.covariance) @ a, theirs.covariance, atol=2e-3)


def test_the_surrogate_has_the_gradient_of_the_distance():
    x, wanted = jnp.asarray(draws(1).reshape(400, 2, 2, 1)), draws(2)
    u = np.asarray(noisy(KEY, x, *LEVELS)[0]).reshape(400, 4)
    ours, theirs = moments_of(u), moments_of(wanted)
    lead = Lead(ours, optimal_matrix(ours, theirs))
    found = jax.grad(lambda x: surrogate(KEY, x, flat, lead, theirs)[0])(x).reshape(400, 4)
    direction = np.random.default_rng(3).normal(size=u.shape)
    # Half the distance; `np.cov` divides by one less, which a step of 1e-3 of it does not see.
    ahead, behind = (0.5 * fid(u + step * direction, wanted) for step in (1e-3, -1e-3))
    assert np.sum(found * direction) == pytest.approx((ahead - behind) / 2e-3, rel=0.02)


def test_draws_that_follow_get_the_moments_wanted():
    u, theirs = draws(1), moments_of(draws(2))
    before = fid(u, draws(2))
    lead = first_lead(theirs)
    for step in range(300):
        lead = followed(lead, jnp.asarray(u), theirs, jnp.asarray(step), keep=0.5)
        u = u - 0.1 * np.asarray(u - (theirs.mean + (u - lead.moments.mean) @ lead.matrix))
    assert fid(u, draws(2)) < 1e-3 * before


def test_features_have_unit_variance_on_average_and_the_moments_said():
    images = np.random.default_rng(0).integers(0, 256, (300, 8, 8)).astype(np.uint8)
    features, moments = features_of(KEY, unet(KEY, (4, 6), shape=(8, 8)), images)
    u = jax.vmap(features)(noisy(KEY, jnp.asarray(images[..., None] / 255.0, jnp.float32), *LEVELS)[0])
    assert u.shape == (300, len(moments.mean))
    # Of other noise than that of the moments: four standard errors of a mean of 300.
    assert np.abs(u.mean(axis=0) - moments.mean).max() < 4 * np.sqrt(2 / 300) * u.std(axis=0).max()
    assert np.trace(moments.covariance) / len(moments.mean) == pytest.approx(1.0, abs=0.15)


def test_images_are_sorted_into_the_kinds_that_they_are_of(tmp_path):
    rng = np.random.default_rng(0)
    kinds = rng.choice(3, 240, p=[0.6, 0.3, 0.1])
    stripes = np.zeros((3, 8, 8))
    stripes[0, :4], stripes[1, :, :4], stripes[2] = 255, 255, 255 * np.eye(8)
    images = np.clip(stripes[kinds] + rng.normal(0, 10, (240, 8, 8)), 0, 255).astype(np.uint8)
    teacher = sorted_into_kinds(KEY, jnp.ravel, images, 3, 0.1, tmp_path / "kinds.npz")
    together = np.zeros((3, 3), int)
    np.add.at(together, (kinds, np.asarray(teacher.kinds)), 1)
    assert together.max(axis=1).sum() > 230
    np.testing.assert_allclose(np.sort(teacher.shares(3)), np.sort(np.bincount(kinds) / 240), atol=0.05)
    x, chosen = teacher.batch(KEY, 50)
    rows = np.asarray((images[None] == np.round(255 * x)[:, None, :, :, 0]).all(axis=(2, 3)).argmax(axis=1))
    np.testing.assert_array_equal(np.asarray(teacher.kinds)[rows], chosen)
    # Kinds are known by their numbers, which another key would change.
    again = sorted_into_kinds(jax.random.key(9), jnp.ravel, images, 3, 0.1, tmp_path / "kinds.npz")
    np.testing.assert_array_equal(again.kinds, teacher.kinds)
    with pytest.raises(BadFileError, match="240 images"):
        sorted_into_kinds(KEY, jnp.ravel, images[:10], 3, 0.1, tmp_path / "kinds.npz")


def test_a_kind_that_no_image_is_of_has_no_share_and_is_never_drawn():
    kinds = jnp.asarray([1, 1, 1, 3])
    shares = Teacher(jnp.zeros((4, 8, 8), jnp.uint8), kinds).shares(5)
    np.testing.assert_allclose(shares, [0.0, 0.75, 0.0, 0.25, 0.0])
    net = with_shares(generator(KEY, (8, 8), latent=2, stem=4, widths=(2, 2, 2), kinds=5), shares)
    assert np.isfinite(net.bounds).all()
    drawn = np.asarray(kinds_of(net, jax.random.normal(KEY, (4000, 2))))
    assert set(drawn.tolist()) == {1, 3}
    with pytest.raises(ValueError, match="5 kinds"):
        with_shares(net, shares[:3])
