"""Our maps in ONNX's operators: each function adds nodes to a graph and returns the name of its result."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pushforward.export.graph import Graph
from pushforward.frame import Frame
from pushforward.networks import ACTIVATIONS, MLP, Coupled, Identity, Modulated
from pushforward.networks.coupled import kept
from pushforward.structure import LEAST, MOST


def _elu(graph: Graph, h: str) -> str:
    zero, one = graph.constant(0.0), graph.constant(1.0)
    below = graph.add("Sub", graph.add("Exp", graph.add("Min", h, zero)), one)
    return graph.add("Add", graph.add("Max", h, zero), below)


def _gelu(graph: Graph, h: str) -> str:
    # The tanh form, as `jax.nn.gelu` has it; the operator of that name is younger than our operator set.
    cubic = graph.add("Mul", graph.add("Mul", h, h), graph.constant(0.044715))
    inner = graph.add("Mul", h, graph.add("Add", cubic, graph.constant(1.0)))
    bent = graph.add("Tanh", graph.add("Mul", inner, graph.constant(math.sqrt(2.0 / math.pi))))
    half = graph.add("Mul", h, graph.constant(0.5))
    return graph.add("Mul", half, graph.add("Add", bent, graph.constant(1.0)))


def _leaky_relu(graph: Graph, h: str) -> str:
    return graph.add("Max", h, graph.add("Mul", h, graph.constant(0.2)))


def _squareplus(graph: Graph, h: str) -> str:
    one = graph.constant(1.0)
    root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", h, h), one))
    return graph.add("Mul", graph.add("Sub", graph.add("Add", h, root), one), graph.constant(0.5))


OPERATORS: dict[str, Callable[[Graph, str], str]] = {
    "elu": _elu,
    "gelu": _gelu,
    "leaky_relu": _leaky_relu,
    "relu": lambda graph, h: graph.add("Relu", h),
    "silu": lambda graph, h: graph.add("Mul", h, graph.add("Sigmoid", h)),
    "squareplus": _squareplus,
    "tanh": lambda graph, h: graph.add("Tanh", h),
}
assert OPERATORS.keys() == ACTIVATIONS.keys()


def add_mlp(graph: Graph, net: MLP, x: str) -> str:
    """Add a fully connected network."""
    h, last = x, len(net.weights) - 1
    for layer, (weight, bias) in enumerate(zip(net.weights, net.biases, strict=True)):
        names = graph.constant(np.asarray(weight), "weight"), graph.constant(np.asarray(bias), "bias")
        h = graph.add("Gemm", h, *names, transB=1)
        if layer < last:
            h = OPERATORS[net.activation](graph, h)
    if not net.skip:
        return h
    # A latent longer than the point loses its tail on the skip, a shorter one is padded: a product does both.
    if net.in_size != net.out_size:
        x = graph.add("MatMul", x, graph.constant(np.eye(net.in_size, net.out_size), "skip"))
    return graph.add("Add", h, x)


def add_coupled(graph: Graph, network: Coupled, z: str) -> str:
    """Add the layers one after the other: coordinates kept are stretched by one and shifted by nothing."""
    for index, net in enumerate(network.nets):
        mask = kept(index, network.in_size)
        seen = graph.add("Mul", z, graph.constant(mask, "kept"))
        both = add_mlp(graph, net, seen)
        up = graph.add("Greater", graph.columns(both, 0, network.in_size), graph.constant(0.0))
        bound = graph.add("Where", up, graph.constant(MOST), graph.constant(LEAST))
        z = _stretched(graph, z, both, 1.0 - mask, bound)
    return z


def _stretched(graph: Graph, z: str, both: str, moved: np.ndarray, bound: str) -> str:
    """Add `z exp(bound tanh(s / bound)) + a`, with `[s, a]` as `both`, where coordinates are `moved`."""
    dim, moving = len(moved), graph.constant(moved, "moved")
    bent = graph.add("Tanh", graph.add("Div", graph.columns(both, 0, dim), bound))
    stretch = graph.add("Mul", graph.add("Mul", bent, bound), moving)
    shift = graph.add("Mul", graph.columns(both, dim, 2 * dim), moving)
    return graph.add("Add", graph.add("Mul", z, graph.add("Exp", stretch)), shift)


def add_network(graph: Graph, network: Any, z: str) -> str:
    """Add whichever network a sampler has."""
    if isinstance(network, Identity):
        return z
    if isinstance(network, MLP):
        return add_mlp(graph, network, z)
    if isinstance(network, Modulated):
        both = add_mlp(graph, network.net, z)
        return _stretched(graph, z, both, np.ones(network.in_size), graph.constant(MOST))
    if isinstance(network, Coupled):
        return add_coupled(graph, network, z)
    raise TypeError(
        f"`network` must be an MLP, Modulated or Coupled to be exported; got {type(network).__name__}. "
        "A network of your own is a function in `pushforward/export/operators.py`."
    )


def add_frame(graph: Graph, frame: Frame, u: str, output: str) -> str:
    """Add `centre + scale * sinh(bend * v) / bend`, `v = shift + matrix @ u`; where `bend = 0`, it is `v`."""
    matrix, shift, scale, centre = (
        graph.constant(getattr(frame, name), name) for name in ("matrix", "shift", "scale", "centre")
    )
    v = graph.add("Gemm", u, matrix, shift, transB=1)
    bend = np.asarray(frame.bend)
    if np.any(bend != 0):
        safe = graph.constant(np.where(bend != 0, bend, 1.0), "bend")
        curved = graph.add("Div", _sinh(graph, graph.add("Mul", v, safe)), safe)
        # Masks of 0 and 1 would turn an overflow into 0 * inf; a choice does not.
        is_bent = graph.add("Greater", graph.constant(abs(bend)), graph.constant(0.0))
        v = graph.add("Where", is_bent, curved, v)
    return graph.add("Add", graph.add("Mul", v, scale), centre, output=output)


def _sinh(graph: Graph, a: str) -> str:
    if graph.dtype == np.float32:
        return graph.add("Sinh", a)
    # onnxruntime has no Sinh of doubles; they have digits to spare for the difference.
    rise, fall = graph.add("Exp", a), graph.add("Exp", graph.add("Neg", a))
    return graph.add("Mul", graph.add("Sub", rise, fall), graph.constant(0.5))
