"""The paper's objectives, which read a fitted score or critic: KL, Fisher and Fisher-Stein."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pushforward.base import Score
from pushforward.checks import check_choice, check_positive
from pushforward.divergence import stein_value, value_and_divergence
from pushforward.objectives.base import Latents, Network, Objective, OneKey, Scalar, View, Wants, push


class KL(Objective):
    """`E[ x . stopgrad( s_p(x) - s_q(x) ) ]`, `x = g(z)`: the paper's eq. `igm_kl2`.

    The score-function term of the gradient has mean zero and is dropped.
    """

    wants = Wants(one_derivative=True, rows=True)

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the surrogate; only its gradient has a meaning."""
        x = push(network, z)
        # Held before the scores are asked for: some targets can be differentiated once only.
        held = jax.lax.stop_gradient(x)
        pull = jax.vmap(lambda point: view.score(point) - view.target.score(point))(held)
        return jnp.mean(jnp.sum(x * jax.lax.stop_gradient(pull), axis=-1))


def _hyvarinen(score: Score, x: Float[Array, " dim"]) -> Scalar:
    """Return `H_s(x) = |s(x)|^2 / 2 + div s(x)`."""
    value, divergence = value_and_divergence(score, x)
    return 0.5 * value @ value + divergence


class Fisher(Objective):
    """`E[ H_{s_q}(x) - H_{s_p}(x) ]`, `H_s = |s|^2 / 2 + div s`, `s_p` frozen (eq. `igm_fd_final`).

    Since `D_F(p, q) = E_p H_{s_q} - min_s E_p H_s`, this is the whole gradient by the envelope theorem;
    the first term of the paper's sum alone has the wrong sign for a sampler that is too narrow.

    `form="trace"` is the paper's: third derivatives of `log q`, second of the score net, `dim` tangents.
    `form="projection"` adds noise `sigma e` to the draws and uses `E[ div s ] = E[ s . e / sigma ]`
    (denoising), which leaves `E[ |s_q(y) + e/sigma|^2 - |s_p(y) + e/sigma|^2 ] / 2` at `y = x + sigma e`:
    first derivatives only. The score must then be that of the noisy draws (`matching.Denoising` with the
    same `sigma`), and it is the law of `y` that is brought to the target.
    """

    form: str = eqx.field(static=True, default="trace")
    sigma: float = eqx.field(static=True, default=0.05, converter=lambda v: check_positive(v, "sigma"))

    def __check_init__(self):
        check_choice(self.form, "form", ("trace", "projection"))

    @property
    def wants(self) -> Wants:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The trace form differentiates the score."""
        return Wants(smooth=self.form == "trace", rows=self.form == "trace")

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the surrogate; its gradient is that of the Fisher divergence where the score is exact."""
        x = push(network, z)
        if self.form == "trace":
            s_q, s_p = view.target.score, view.score
            return jnp.mean(jax.vmap(lambda point: _hyvarinen(s_q, point) - _hyvarinen(s_p, point))(x))
        noise = jax.random.normal(key, x.shape, dtype=x.dtype)
        y = x + self.sigma * noise
        s_q, s_p = jax.vmap(view.target.score)(y), jax.vmap(view.score)(y)
        # The difference of the two squares, written so that the large e/sigma never meets itself.
        gap = (s_q - s_p) * (0.5 * (s_q + s_p) + noise / self.sigma)
        return jnp.mean(jnp.sum(gap, axis=-1))


class FisherStein(Objective):
    """`E[ s_q . f + div f - lambda |f|^2 ]` with a critic `f` in the score's place (the minimax).

    At the optimal critic its gradient is the Fisher gradient divided by `2 lambda` (Theorem).
    Fit the critic with `matching.Critic`.
    """

    wants = Wants("critic", smooth=True, rows=True)

    weight: float = eqx.field(static=True, default=0.5, converter=lambda v: check_positive(v, "weight"))

    def surrogate(self, key: OneKey, network: Network, z: Latents, view: View) -> Scalar:
        """Return the Fisher-Stein value of the frozen critic."""
        s_q, f, weight = view.target.score, view.score, self.weight
        return jnp.mean(jax.vmap(lambda point: stein_value(s_q, f, point, weight))(push(network, z)))
