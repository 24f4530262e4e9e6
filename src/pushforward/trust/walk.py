"""Short Metropolis-adjusted Langevin chains from the sampler's own draws, all at once.

Own code and not BlackJAX's, since a check must work where only the core is installed.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pushforward.base import Target
from pushforward.trust.settings import LIMITS


class Walked(NamedTuple):
    """Where the chains ended."""

    u: Float[Array, "n dim"]
    log_density: Float[Array, " n"]
    acceptance: float
    log_step: float


def short_chains(
    key: Key[Array, ""],
    target: Target,
    u: Float[Array, "n dim"],
    num_steps: int,
    pilot: Float[Array, "m dim"],
) -> Walked:
    """Run one chain from every row of `u`; the step is chosen on chains from `pilot` and then left alone.

    With a step that does not depend on the chain, and drawn anew each time, `num_steps` steps are a
    reversible kernel: were the rows exact draws, first and last point of a chain could change places. That
    symmetry is what the tests on these chains rest on.
    """
    key_pilot, key_walk = jax.random.split(key)
    start = jnp.asarray(np.log(1.5 * u.shape[1] ** (-1 / 6)), u.dtype)
    # As many steps and, where there are as many draws, chains as later: then one program serves both.
    _, _, _, log_step = _walk(key_pilot, target, pilot, start, jnp.asarray(LIMITS.gain, u.dtype), num_steps)
    end, value, acceptance, _ = _walk(key_walk, target, u, log_step, jnp.zeros((), u.dtype), num_steps)
    return Walked(end, value, float(acceptance), float(log_step))


@eqx.filter_jit
def _walk(
    key: Key[Array, ""],
    target: Target,
    u: Float[Array, "n dim"],
    log_step: Float[Array, ""],
    gain: Float[Array, ""],
    num_steps: int,
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Float[Array, ""], Float[Array, ""]]:
    n, dim = u.shape
    limit = 3.0 * np.sqrt(dim)

    def value_and_slope(x):
        value, slope = jax.vmap(jax.value_and_grad(target.log_density))(x)
        good = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope), axis=1)
        return jnp.where(good, value, -jnp.inf), jnp.where(good[:, None], slope, 0.0)

    def drift(slope, step):
        raw = 0.5 * step * slope
        norm = jnp.linalg.norm(raw, axis=1, keepdims=True)
        return raw * jnp.minimum(1.0, limit / jnp.maximum(norm, 1e-30))

    def body(carry, key_one):
        x, value, slope, log_step = carry
        key_noise, key_step, key_accept = jax.random.split(key_one, 3)
        step = jnp.exp(log_step - LIMITS.step_spread * jax.random.uniform(key_step, (n, 1), x.dtype))
        noise = jax.random.normal(key_noise, (n, dim), x.dtype)
        forth = drift(slope, step)
        new = x + step * (forth + noise)
        new_value, new_slope = value_and_slope(new)
        back = noise + forth + drift(new_slope, step)
        log_ratio = new_value - value + 0.5 * jnp.sum(noise**2 - back**2, axis=1)
        yes = jnp.log(jax.random.uniform(key_accept, (n,), x.dtype)) < log_ratio
        x, slope = (jnp.where(yes[:, None], a, b) for a, b in ((new, x), (new_slope, slope)))
        rate = jnp.mean(yes)
        log_step = log_step + gain * (rate - LIMITS.acceptance)
        return (x, jnp.where(yes, new_value, value), slope, log_step), rate

    carry = (u, *value_and_slope(u), log_step)
    (u, value, _, log_step), rates = jax.lax.scan(body, carry, jax.random.split(key, num_steps))
    return u, value, jnp.mean(rates), log_step
