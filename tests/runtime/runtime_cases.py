"""Samplers of every kind that `fit` can produce, with weights far from where training starts."""

import json

import equinox as eqx
import jax
import numpy as np

from pushforward.frame import Frame
from pushforward.latents import IndependentMixtures, Normal, NormalMixture, Uniform
from pushforward.networks import ACTIVATIONS, MLP, Coupled, Identity, Modulated
from pushforward.networks.coupled import num_layers
from pushforward.parameters import Parameter, Parameters
from pushforward.sampler import Sampler

ABOUT = {"target": "čau ☃", "method": "default", "phases": [{"phase": "train", "seconds": 12.5}]}


def net(rng, sizes, activation, *, skip=False):
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    weights = tuple(_array(rng.normal(size=shape) / np.sqrt(shape[1])) for shape in shapes)
    biases = tuple(_array(rng.normal(size=shape[0])) for shape in shapes)
    return MLP(weights, biases, activation, skip)


def frame(rng, dim, *, bent):
    scale, shift = np.exp(2.0 * rng.normal(size=dim)), 0.3 * rng.normal(size=dim)
    centre, matrix = 2.0 * scale * rng.normal(size=dim), np.tril(0.4 * rng.normal(size=(dim, dim)))
    np.fill_diagonal(matrix, np.exp(matrix.diagonal()))
    # One coordinate straight, one hardly bent, the others much: the three cases of `sinh(b v) / b`.
    bend = np.resize([0.0, 1e-3, 0.6], dim) if bent else np.zeros(dim)
    return Frame(*(_array(part) for part in (centre, scale, bend, shift)), matrix=_array(matrix))


def mixture(rng, components, dim):
    choleskys = np.tril(0.3 * rng.normal(size=(components, dim, dim)))
    for cholesky in choleskys:
        np.fill_diagonal(cholesky, rng.uniform(0.2, 1.0, dim))
    weights = rng.dirichlet(np.ones(components))
    means = 3.0 * rng.normal(size=(components, dim))
    return NormalMixture(_array(weights), _array(means), _array(choleskys))


def columns(rng, components, dim):
    weights = rng.dirichlet(np.ones(components), dim)
    means, scales = 3.0 * rng.normal(size=weights.shape), rng.uniform(0.2, 1.0, weights.shape)
    return IndependentMixtures(_array(weights), _array(means), _array(scales))


def _array(values):
    return jax.device_put(np.asarray(values, np.float64 if jax.config.jax_enable_x64 else np.float32))


def _mlp(activation, latents, dim, *, skip, bent):
    def build():
        rng = np.random.default_rng(3)
        network = net(rng, (latents, 24, 17, dim), activation, skip=skip)
        law = Uniform(latents) if activation == "relu" else Normal(latents)
        return Sampler(law, network, frame(rng, dim, bent=bent), json.dumps(ABOUT))

    return build


def modulated(dim=3):
    rng = np.random.default_rng(4)
    inner = net(rng, (dim, 24, 2 * dim), "squareplus")
    network = Modulated(eqx.tree_at(lambda n: n.weights[-1], inner, 0.3 * inner.weights[-1]))
    return Sampler(mixture(rng, 5, dim), network, frame(rng, dim, bent=True), json.dumps(ABOUT))


def coupled(dim=5):
    rng = np.random.default_rng(6)
    nets = []
    for _ in range(num_layers(dim)):
        inner = net(rng, (dim, 16, 2 * dim), "silu")
        nets.append(eqx.tree_at(lambda n: n.weights[-1], inner, 0.3 * inner.weights[-1]))
    return Sampler(columns(rng, 3, dim), Coupled(tuple(nets)), frame(rng, dim, bent=True), json.dumps(ABOUT))


def identity():
    rng = np.random.default_rng(7)
    return Sampler(mixture(rng, 5, 3), Identity(3), frame(rng, 3, bent=True), json.dumps(ABOUT))


def named():
    rng = np.random.default_rng(5)
    names = Parameters((Parameter("mu", ()), Parameter("tau", (), "positive")))
    network = net(rng, (2, 8, 2), "tanh", skip=True)
    return Sampler(Normal(2), network, frame(rng, 2, bent=False), json.dumps(ABOUT), names)


SAMPLERS = {
    # More latents than coordinates, fewer, and as many; with a skip and without.
    **{name: _mlp(name, 5, 3, skip=True, bent=i % 2 == 0) for i, name in enumerate(sorted(ACTIVATIONS))},
    "few latents": _mlp("silu", 2, 4, skip=True, bent=True),
    "no skip": _mlp("tanh", 3, 3, skip=False, bent=False),
    "modulated": modulated,
    "coupled": coupled,
    "identity": identity,
    "named": named,
}


def by_jax(sampler, latents):
    return np.asarray(jax.jit(jax.vmap(sampler))(latents))


def error(found, expected):
    """The largest error in units of each coordinate's spread, or of the value itself far out in a tail."""
    return np.max(np.abs(found - expected) / (np.std(expected, axis=0) + np.abs(expected - expected.mean(0))))
