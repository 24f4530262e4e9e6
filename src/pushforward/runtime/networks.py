"""The networks of `pushforward.networks`, a tile of latents at a time, in memory that is used again."""

from typing import TypeAlias

import numpy as np

from pushforward.checks import check_choice, check_count
from pushforward.runtime.activations import ACTIVATIONS
from pushforward.runtime.products import multiply, piece_rows
from pushforward.structure import LEAST, MOST


class Scratch:
    """Memory that one thread uses again from layer to layer and from tile to tile."""

    def __init__(self, dtype: np.dtype):
        self._dtype, self._held = dtype, {}

    def array(self, name: str | int, rows: int, columns: int) -> np.ndarray:
        """Return an array of that shape, its numbers arbitrary; the same name gives the same memory."""
        held = self._held.get(name)
        if held is None or held.size < rows * columns:
            held = self._held[name] = np.empty(rows * columns, self._dtype)
        return held[: rows * columns].reshape(rows, columns)


class MLP:
    """`x -> W_n a(... a(W_1 x + b_1) ...) + b_n`, plus `x` itself where `skip` is set."""

    def __init__(
        self,
        weights: tuple[np.ndarray, ...],
        biases: tuple[np.ndarray, ...],
        activation: str,
        skip: bool,  # noqa: FBT001 (a field of the file)
    ):
        sizes = [weights[0].shape[1], *(weight.shape[0] for weight in weights)]
        chained = [(sizes[i + 1], sizes[i]) for i in range(len(weights))]
        if [w.shape for w in weights] != chained or [b.shape for b in biases] != [(s,) for s in sizes[1:]]:
            raise ValueError("the layers of an MLP must chain: each `in` size is the `out` size before it.")
        self.in_size, self.out_size = sizes[0], sizes[-1]
        self.weights, self.biases, self.activation, self.skip = weights, biases, activation, bool(skip)
        self._act = ACTIVATIONS[check_choice(activation, "activation", ACTIVATIONS)]
        self.narrow = all(piece_rows(weight) for weight in weights)
        """Whether all of its products are done by the thread that asks for them."""

    def cast(self, dtype: np.dtype) -> "MLP":
        """Return the same network with weights of one type, laid out for products with rows."""
        weights = tuple(np.ascontiguousarray(w.T, dtype).T for w in self.weights)
        return MLP(weights, tuple(b.astype(dtype) for b in self.biases), self.activation, self.skip)

    def __call__(self, x: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
        """Map the rows of `x` into `out`."""
        h, rows = x, len(x)
        for layer, (weight, bias) in enumerate(zip(self.weights[:-1], self.biases[:-1], strict=True)):
            y = scratch.array(layer % 2, rows, len(bias))
            multiply(h, weight.T, y)
            y += bias
            self._act(y, scratch.array("spare", rows, len(bias)))
            h = y
        multiply(h, self.weights[-1].T, out)
        out += self.biases[-1]
        if self.skip:
            shared = min(self.in_size, self.out_size)
            out[:, :shared] += x[:, :shared]


class Modulated:
    """`u = z exp(3 tanh(s(z) / 3)) + a(z)`, with `[s, a]` one MLP."""

    def __init__(self, net: MLP):
        if not isinstance(net, MLP) or net.out_size != 2 * net.in_size:
            raise ValueError("the net of a Modulated map must have twice as many outputs as inputs.")
        self.net, self.in_size, self.out_size, self.narrow = net, net.in_size, net.in_size, net.narrow

    def cast(self, dtype: np.dtype) -> "Modulated":
        """Return the same network with weights of one type."""
        return Modulated(self.net.cast(dtype))

    def __call__(self, x: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
        """Map the rows of `x` into `out`."""
        both = scratch.array("modulation", len(x), self.net.out_size)
        self.net(x, both, scratch)
        np.divide(both[:, : self.in_size], MOST, out=out)
        np.tanh(out, out=out)
        out *= MOST
        np.exp(out, out=out)
        out *= x
        out += both[:, self.in_size :]


class Coupled:
    """Layers `u_m <- u_m exp(b(s)) + a`, `b` bounded, `[s, a]` an MLP of what a layer keeps."""

    def __init__(self, nets: tuple[MLP, ...]):
        dim = nets[0].in_size if nets else 0
        if dim < 1 or any((net.in_size, net.out_size) != (dim, 2 * dim) for net in nets):
            raise ValueError("the nets of a Coupled map must each have twice as many outputs as inputs.")
        self.nets, self.in_size, self.out_size = tuple(nets), dim, dim
        self.narrow = all(net.narrow for net in nets)

    def cast(self, dtype: np.dtype) -> "Coupled":
        """Return the same network with weights of one type."""
        return Coupled(tuple(net.cast(dtype) for net in self.nets))

    def __call__(self, x: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
        """Map the rows of `x` into `out`."""
        np.copyto(out, x)
        seen = scratch.array("seen", *x.shape)
        both = scratch.array("modulation", len(x), 2 * self.in_size)
        for index, net in enumerate(self.nets):
            bit, side = divmod(index, 2)
            moved = (np.arange(self.in_size) >> bit) % 2 != side
            np.copyto(seen, out)
            seen[:, moved] = 0.0
            net(seen, both, scratch)
            stretch = both[:, : self.in_size][:, moved]
            bound = np.where(stretch > 0, stretch.dtype.type(MOST), stretch.dtype.type(LEAST))
            stretch = np.tanh(stretch / bound) * bound
            out[:, moved] = out[:, moved] * np.exp(stretch) + both[:, self.in_size :][:, moved]


class Identity:
    """The map that changes nothing."""

    narrow = True

    def __init__(self, size: int):
        self.in_size = self.out_size = check_count(size, "size")

    def cast(self, dtype: np.dtype) -> "Identity":
        """Return the map itself, which holds no numbers."""
        return self

    def __call__(self, x: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
        """Copy the rows of `x` into `out`."""
        np.copyto(out, x)


Network: TypeAlias = MLP | Modulated | Coupled | Identity
