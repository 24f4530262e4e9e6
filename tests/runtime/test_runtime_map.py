"""NumPy makes of the same latents what JAX makes of them, and its own latents have the right law."""

import os
import threading

import numpy as np
import pytest
from runtime_cases import ABOUT, SAMPLERS, by_jax, columns, error, mixture, modulated, named, net

from pushforward import runtime
from pushforward.latents import IndependentMixtures, Normal, NormalMixture, Uniform
from pushforward.runtime.networks import MLP, Scratch
from pushforward.runtime.products import ONE_CORE, multiply
from pushforward.runtime.sampler import FIRST, TILE


def reload(sampler, tmp_path):
    sampler.save(tmp_path / "s.pf")
    return runtime.load(tmp_path / "s.pf")


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_same_latents_give_the_same_draws(name, tmp_path):
    sampler = SAMPLERS[name]()
    light = reload(sampler, tmp_path)
    latents = np.random.default_rng(0).normal(size=(TILE + 5, sampler.latent.dim)).astype(np.float32)
    assert error(light(latents), by_jax(sampler, latents)) < 1e-5
    assert light.about == ABOUT
    assert (light.dim, light.latent_dim, light.dtype) == (sampler.dim, sampler.latent.dim, np.float32)


def test_a_wrong_weight_is_seen(tmp_path):
    """The tolerance is tight enough to see one weight of hundreds off by a thousandth."""
    sampler = SAMPLERS["silu"]()
    light = reload(sampler, tmp_path)
    weight = light.network.weights[1].copy()
    weight[3, 4] *= 1.001
    light.network.weights = (light.network.weights[0], weight, light.network.weights[2])
    latents = np.random.default_rng(0).normal(size=(500, 5)).astype(np.float32)
    assert error(light(latents), by_jax(sampler, latents)) > 1e-5


def test_double_precision(tmp_path):
    import jax

    with jax.enable_x64(True):
        sampler = modulated()
        light = reload(sampler, tmp_path)
        latents = np.random.default_rng(0).normal(size=(300, 3))
        assert light.dtype == np.float64
        assert error(light(latents), by_jax(sampler, latents)) < 1e-12


def test_what_overflows_is_infinite_and_silent(tmp_path):
    sampler = SAMPLERS["silu"]()
    far = reload(sampler, tmp_path)(np.full((2, 5), -1e4, np.float32))
    assert far.shape == (2, 3)


def test_draws_of_a_seed(tmp_path):
    light = reload(modulated(), tmp_path)
    many = light.sample(7, FIRST + 3 * TILE)
    for count in (1, FIRST, FIRST + 1):
        np.testing.assert_allclose(light.sample(7, count), many[:count], rtol=2e-5, atol=1e-4)
    np.testing.assert_array_equal(np.concatenate(list(light.stream(7, len(many)))), many)
    np.testing.assert_array_equal(light.sample(np.random.default_rng(7), 50), light.sample(7, 50))
    rng = np.random.default_rng(7)
    assert not np.array_equal(light.sample(rng, 50), light.sample(rng, 50))


def test_many_rows_are_shared_among_threads_and_threads_share_a_sampler(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)
    light = reload(modulated(), tmp_path)
    latents = np.random.default_rng(0).normal(size=(13 * TILE + 7, 3)).astype(np.float32)
    found: dict[int, np.ndarray] = {}
    threads = [threading.Thread(target=lambda i=i: found.update({i: light(latents)})) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    expected = light(latents)
    for each in found.values():
        np.testing.assert_array_equal(each, expected)
    assert len(found) == 3


def test_named_draws_keep_their_constraints(tmp_path):
    sampler = named()
    light = reload(sampler, tmp_path)
    draws, x = light.draws(1, 100), light.sample(1, 100)
    assert set(draws) == {"mu", "tau"}
    assert np.all(draws["tau"] > 0)
    np.testing.assert_allclose(draws["tau"], sampler.parameters.constrain(x)["tau"], rtol=1e-6)
    plain = reload(modulated(), tmp_path)
    np.testing.assert_array_equal(plain.draws(1, 10)["x"], plain.sample(1, 10))


LAWS = {
    "normal": lambda: Normal(2),
    "uniform": lambda: Uniform(2),
    "mixture": lambda: mixture(np.random.default_rng(8), 7, 2),
    "columns": lambda: columns(np.random.default_rng(9), 4, 2),
    "one shape": lambda: one_shape(np.random.default_rng(10), 7, 2),
}


def one_shape(rng, components, dim):
    law = mixture(rng, components, dim)
    return NormalMixture(law.weights, law.means, law.choleskys[:1])


def moments(law):
    """Mean and second moments in closed form."""
    if isinstance(law, Normal):
        return np.zeros(2), np.eye(2)
    if isinstance(law, Uniform):
        return np.zeros(2), np.eye(2) / 3.0
    if isinstance(law, IndependentMixtures):
        weights, means, scales = (np.asarray(a, np.float64) for a in (law.weights, law.means, law.scales))
        weights = weights / weights.sum(1, keepdims=True)
        mean, square = (weights * means).sum(1), (weights * (means**2 + scales**2)).sum(1)
        return mean, np.outer(mean, mean) + np.diag(square - mean**2)
    weights, means, choleskys = (np.asarray(a, np.float64) for a in (law.weights, law.means, law.choleskys))
    squares = choleskys @ choleskys.transpose(0, 2, 1) + means[:, :, None] * means[:, None, :]
    weights = weights / weights.sum()
    return weights @ means, np.einsum("k,kij->ij", weights, squares)


def z_scores(z, law):
    mean, second = moments(law)
    values = np.stack([z[:, 0], z[:, 1], z[:, 0] ** 2, z[:, 1] ** 2, z[:, 0] * z[:, 1]], axis=1).astype(float)
    truth = np.asarray([*mean, second[0, 0], second[1, 1], second[0, 1]])
    return (values.mean(0) - truth) / (values.std(0) / np.sqrt(len(z)))


def light_law(law):
    from pushforward.export.onnx_file import describe

    return runtime.law(describe(law))


@pytest.mark.parametrize("name", LAWS)
def test_latents_have_the_law(name):
    """Five z-scores within 4.5: a false failure once in 30,000 for another seed. Shown to fail below."""
    law = LAWS[name]()
    z = light_law(law).sample(np.random.default_rng(11), 40_000)
    assert z.dtype == np.float32
    assert np.all(np.abs(z_scores(z, law)) < 4.5)
    # Rows are in random order, not component by component: neighbours are uncorrelated.
    centred = z[:, 0] - z[:, 0].mean()
    assert abs(np.mean(centred[1:] * centred[:-1]) / centred.var()) * np.sqrt(len(z)) < 4.5


def test_a_planted_error_in_the_law_is_seen():
    law = LAWS["mixture"]()
    wrong = light_law(law)
    wrong.weights = wrong.weights[::-1]
    assert np.max(np.abs(z_scores(wrong.sample(np.random.default_rng(11), 40_000), law))) > 4.5


@pytest.mark.parametrize(
    "shape", [(2048, 64, 64), (2051, 64, 64), (5, 64, 64), (300, 3, 7), (40, 200, 300), (0, 4, 4)]
)
def test_products_in_pieces(shape):
    rng = np.random.default_rng(0)
    rows, inner, columns = shape
    x, weight = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    out = np.full((rows, columns), np.nan)
    multiply(x, weight, out)
    np.testing.assert_allclose(out, x @ weight, atol=1e-11)


def test_pieces_stay_on_one_core(monkeypatch):
    sizes = []
    whole = np.matmul

    def watched(a, b, out):
        sizes.append(a.shape[-2] * a.shape[-1] * b.shape[-1])
        return whole(a, b, out=out)

    monkeypatch.setattr(np, "matmul", watched)
    parts = net(np.random.default_rng(0), (2, 64, 64, 64, 2), "silu")
    light = MLP(tuple(map(np.asarray, parts.weights)), tuple(map(np.asarray, parts.biases)), "silu", False)
    assert light.narrow
    light(np.zeros((2000, 2), np.float32), np.empty((2000, 2), np.float32), Scratch(np.dtype(np.float32)))
    assert sizes
    assert max(sizes) <= ONE_CORE
