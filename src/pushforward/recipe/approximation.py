"""What stands for a target: a law of latents, a map where there is one, and a frame."""

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from pushforward.base import Target
from pushforward.frame import Frame, InFrame
from pushforward.host import heights, into, inverted, log_densities, log_det, mapped, out_of, pulled
from pushforward.latents import Latent
from pushforward.networks import Coupled


class PulledBack(Target):
    """`log q(g(z)) + log |det dg/dz|`: the target in the coordinates of `g`'s latents."""

    target: Target
    network: Coupled
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(self, target: Target, network: Coupled):
        """See `target` through `network`."""
        self.target, self.network = target, network
        self.dim, self.name = target.dim, target.name

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the log density of one latent."""
        u, log_det = self.network.value_and_log_det(x)
        return self.target.log_density(u) + log_det


class Approximation(NamedTuple):
    """Draws `frame(network(z))` of latents `z`; without a network, `frame(z)`."""

    frame: Frame
    latent: Latent
    network: Coupled | None = None
    necks: tuple[int, ...] = ()
    """The latents by which widths go, where the map follows necks."""

    def inside(self, target: Target) -> Target:
        """Return the target in the coordinates of the latents."""
        framed = InFrame(target, self.frame)
        return framed if self.network is None else PulledBack(framed, self.network)

    def heights(self, target: Target, z: np.ndarray, tile: int) -> Float[np.ndarray, " n"]:
        """Return the target's log densities in the coordinates of the latents."""
        if self.network is None:
            return heights(target, out_of(self.frame, z), tile) + log_det(self.frame, z)
        return pulled(InFrame(target, self.frame), self.network, z, tile)

    def weights(self, target: Target, z: np.ndarray, tile: int) -> Float[np.ndarray, " n"]:
        """Return the log importance weights of draws of the latents."""
        return self.heights(target, z, tile) - log_densities(self.latent, z)

    def draws(self, z: np.ndarray, tile: int) -> Float[np.ndarray, "n dim"]:
        """Map latents to draws."""
        return out_of(self.frame, z if self.network is None else mapped(self.network, z, tile))

    def latents(self, x: np.ndarray, tile: int) -> Float[np.ndarray, "n dim"]:
        """Map draws to latents."""
        u = into(self.frame, x)
        return u if self.network is None else inverted(self.network, u, tile)
