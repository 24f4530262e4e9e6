"""The frame of `pushforward.frame`, over rows and in place."""

import numpy as np

from pushforward.runtime.products import multiply


class Frame:
    """`x = centre + scale * sinh(bend * v) / bend` with `v = shift + matrix @ u`; `v` where `bend = 0`."""

    def __init__(
        self, centre: np.ndarray, scale: np.ndarray, bend: np.ndarray, shift: np.ndarray, matrix: np.ndarray
    ):
        self.dim = dim = centre.shape[0]
        if {scale.shape, bend.shape, shift.shape, centre.shape} != {(dim,)} or matrix.shape != (dim, dim):
            raise ValueError("centre, scale, bend, shift and matrix of a Frame must agree in size.")
        self.centre, self.scale, self.bend, self.shift, self.matrix = centre, scale, bend, shift, matrix
        self._bent = np.flatnonzero(bend)

    def cast(self, dtype: np.dtype) -> "Frame":
        """Return the same frame with numbers of one type."""
        parts = (self.centre, self.scale, self.bend, self.shift, self.matrix)
        return Frame(*(part.astype(dtype) for part in parts))

    def __call__(self, u: np.ndarray, out: np.ndarray) -> None:
        """Map the rows of `u` out of the frame into `out`, which must be other memory."""
        multiply(u, self.matrix.T, out)
        out += self.shift
        # Column by column: sinh is dear, and most coordinates of most frames are straight.
        for j in self._bent:
            column = out[:, j] * self.bend[j]
            np.sinh(column, out=column)
            np.divide(column, self.bend[j], out=out[:, j])
        out *= self.scale
        out += self.centre
