"""Whether a log density is a function that JAX can compile and differentiate: what it returns, or why not."""

import traceback
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from pushforward.base import FunctionTarget, NamedTarget, Target

OURS = str(Path(__file__).parents[1])


def label(target: Target) -> str:
    """Return what messages call the target."""
    what = "function" if isinstance(target, FunctionTarget) else "log density"
    return f"`target`: the {what} {target.name!r}"


def output_type(target: Target) -> tuple[np.dtype, str]:
    """Trace the log density and its gradient once, without running them.

    Return the type of the value, and what JAX warned of on the way.
    """
    point = jax.ShapeDtypeStruct((target.dim,), jnp.result_type(float))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            out = jax.eval_shape(target.log_density, point)
        except Exception as error:
            raise ValueError(f"{label(target)} {_failed(target, error)}") from error
    _check_output(target, out)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.eval_shape(jax.value_and_grad(target.log_density), point)
    except Exception as error:
        raise ValueError(
            f"{label(target)} has no gradient: {_short(error)} Write it in `jnp`; what leaves JAX needs a "
            "`jax.custom_vjp`, and a `while_loop` a number of turns that is fixed (`fori_loop`, `scan`)."
        ) from error
    return out.dtype, next((str(each.message) for each in told if "float64" in str(each.message)), "")


def _check_output(target: Target, out: Any) -> None:
    if not hasattr(out, "shape") or not hasattr(out, "dtype"):
        raise TypeError(f"{label(target)} must return a scalar array; got {type(out).__name__}.")
    if out.shape != ():
        raise ValueError(
            f"{label(target)} must return a scalar for one point of shape ({target.dim},); got shape "
            f"{out.shape}. Sum over the coordinates, and do not write it for batches."
        )
    if not jnp.issubdtype(out.dtype, jnp.floating):
        raise TypeError(
            f"{label(target)} must return a floating-point number; got {out.dtype}, which has no gradient."
        )


def _failed(target: Target, error: Exception) -> str:
    """Return how a function failed on one point, and what to write instead."""
    if isinstance(target, FunctionTarget):
        try:
            batch = jax.eval_shape(target.fn, jax.ShapeDtypeStruct((3, target.dim), jnp.result_type(float)))
        except Exception:
            batch = None
        if getattr(batch, "shape", None) == (3,):
            return (
                f"is written for batches of points, (n, {target.dim}). Write it for one point, or hand over "
                "`lambda x: fn(x[None])[0]`."
            )
    promise = "a pytree like `example`" if isinstance(target, NamedTarget) else f"`dim={target.dim}`"
    return (
        f"failed on a point of shape ({target.dim},){_place(error)}: {_short(error)} {_remedy(error)}"
        f"Check that {promise} is what the function expects, and that it is written in JAX for one point: "
        "`jnp` and `jax.scipy` in place of NumPy, SciPy, `math` and PyTorch, `jnp.where` in place of `if`."
    )


def _short(error: Exception) -> str:
    words = str(error).splitlines()[0] if str(error) else "no message"
    return f"{type(error).__name__}: {words}"


def _place(error: Exception) -> str:
    """Return the line of the user's own code that failed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if "site-packages" not in each.filename and OURS not in each.filename]
    return f" at line {own[-1].lineno} of {Path(own[-1].filename).name}" if own else ""


def _remedy(error: Exception) -> str:
    words = str(error)
    if "Tensor" in words or "torch" in words:
        return "It computes with PyTorch, which JAX cannot follow: write `jnp`. "
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "It computes with NumPy or SciPy, which JAX cannot follow: write `jnp`. "
    if isinstance(error, jax.errors.ConcretizationTypeError):
        return "It asks for a number where JAX has none yet: `if`, `float()` and `math` cannot be used. "
    return ""


def run_checked(target: Target, point: np.ndarray) -> tuple[str, float]:
    """Run the log density at one point, in a program of its own.

    Return what to say of an index beyond an array, where JAX would take the last element in silence, and the
    value; not a number where it cannot be had this way.
    """
    try:
        checked = checkify.checkify(target.log_density, errors=checkify.index_checks)
        error, value = jax.jit(checked)(point.astype(jnp.result_type(float)))
        message = error.get()
    except Exception:
        return "", float("nan")
    if not message:
        return "", float(value)
    told = message.splitlines()[0].rstrip(". ")
    return (
        f"uses an index beyond the end of an array: {told}. JAX takes the last element instead, in silence. "
        f"Is `dim={target.dim}` too small for the function?"
    ), float(value)
