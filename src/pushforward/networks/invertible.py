"""What a map must offer for the density of its draws to be known, and that density."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array


@runtime_checkable
class Invertible(Protocol):
    """A map that knows its inverse and its determinant."""

    def __call__(self, z: Array, /) -> Array:
        """Map one latent."""
        ...

    def value_and_log_det(self, z: Array, /) -> tuple[Array, Array]:
        """Map one latent, and return `log |det|` of the map there."""
        ...

    def inverse_and_log_det(self, x: Array, /) -> tuple[Array, Array]:
        """Return the latent of one point, and `log |det|` of the map there."""
        ...


def log_density(network: Invertible, latent: Any, x: Array) -> Array:
    """Return the log density at one point of the law that a map makes of a law of latents."""
    z, log_det = network.inverse_and_log_det(x)
    return latent.log_density(z) - log_det
