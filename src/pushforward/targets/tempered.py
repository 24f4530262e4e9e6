import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from pushforward.base import Target
from pushforward.checks import check_positive


class Tempered(Target):
    """A target between a base and another: `log q_b = (1 - b) log base + b log target`.

    Without a base, `b log target`: a flatter or a sharper version of it. The inverse temperature `b` is an
    array, so a schedule may change it (`equinox.tree_at`) without a new compilation.
    """

    target: Target
    base: Target | None
    inverse_temperature: Float[Array, ""]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        target: Target,
        inverse_temperature: Float[ArrayLike, ""],
        base: Target | None = None,
        *,
        name: str | None = None,
    ):
        """Temper `target`; `b` is checked where it is a plain number."""
        if isinstance(inverse_temperature, int | float):
            check_positive(inverse_temperature, "inverse_temperature", zero=base is not None)
            if base is not None and inverse_temperature > 1:
                raise ValueError(
                    "`inverse_temperature` must be at most 1 with a base; "
                    f"got {inverse_temperature}. Leave out `base` to sharpen a target."
                )
        if base is not None and base.dim != target.dim:
            raise ValueError(f"`base` must have the target's dimension, {target.dim}; got {base.dim}.")
        self.target, self.base = target, base
        self.inverse_temperature = jnp.asarray(inverse_temperature, float)
        self.dim, self.name = target.dim, name or f"tempered_{target.name}"

    def log_density(self, x: Float[Array, " dim"]) -> Float[Array, ""]:
        """Return the weighted sum of the two log densities."""
        b = self.inverse_temperature
        rest = 0.0 if self.base is None else (1 - b) * self.base.log_density(x)
        return b * self.target.log_density(x) + rest
