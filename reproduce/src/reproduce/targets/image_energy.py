"""An energy-based model of images: a target that knows its own noisy versions."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array, Float

from pushforward.checks import check_positive
from reproduce.targets.grid import Known

Energy = Callable[[Float[Array, "height width 1"]], Float[Array, ""]]


class ImageEnergy(Known):
    """`log q_sigma(x) = -f(x) / sigma`: one function `f` for the images under any noise `N(0, sigma^2 I)`.

    **Arguments:**

    - `energy`: `f`, of one image `(height, width, 1)`.
    - `shape`: height and width; a point of the target is an image read row by row.
    - `sigma`: the noise of this version; `at(sigma)` is another.
    """

    energy: Energy
    shape: tuple[int, int] = eqx.field(static=True)
    sigma: float | Float[Array, ""]

    def __init__(
        self,
        energy: Energy,
        shape: tuple[int, int],
        sigma: float | Float[Array, ""] = 0.3,
        name: str = "image_energy",
    ):
        """Make a target of an energy."""
        self.energy, self.shape, self.name = energy, (int(shape[0]), int(shape[1])), name
        self.sigma = check_positive(sigma, "sigma") if isinstance(sigma, int | float) else sigma
        self.dim = self.shape[0] * self.shape[1]

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `-f(x) / sigma`."""
        return -self.slope(x) / self.sigma

    def slope(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return `f(x)`, whose gradient has about the length `sqrt(dim)` at every noise level."""
        return self.energy(x.reshape(*self.shape, 1))

    def noisy_score(self, x: Float[Array, " dim"], sigma: Float[Array, ""]) -> Float[Array, " dim"]:
        """Return the score under noise `sigma`: `-grad f(x) / sigma`."""
        return -jax.grad(self.slope)(x) / sigma

    def denoise(self, x: Float[Array, " dim"], sigma: Float[Array, ""]) -> Float[Array, " dim"]:
        """Return Tweedie's mean of the clean image: `x + sigma^2 score = x - sigma grad f(x)`."""
        return x + sigma**2 * self.noisy_score(x, sigma)

    def at(self, sigma: float | Float[Array, ""]) -> "ImageEnergy":
        """Return the same model under other noise."""
        return ImageEnergy(self.energy, self.shape, sigma, self.name)
