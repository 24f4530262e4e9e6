"""What users hand us, checked at the door: argument, expectation, what came, remedy."""

import difflib
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def remedied(remedies: Mapping[str, str]) -> Callable[[Function], Function]:
    """Let a function refuse a named argument that it does not take by saying what to write instead."""

    def decorate(function: Function) -> Function:
        known = inspect.signature(function).parameters

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            for name in options:
                if name not in known:
                    near = "".join(
                        f"Did you mean `{each}`?" for each in difflib.get_close_matches(name, known, 1)
                    )
                    remedy = remedies.get(name, near).format(name=name)
                    raise TypeError(f"`{function.__name__}` takes no argument `{name}`. {remedy}".rstrip())
            return function(*args, **options)

        return call  # type: ignore[return-value]

    return decorate


def check_key(key: Any, argument: str = "key", *, each: str = "") -> None:
    """Refuse anything but one typed key: an old-style `uint32` pair mixes up silently with data.

    `each` is what to write instead where many keys make sense.
    """
    import jax  # only whoever has a key has JAX; the other checks serve `pushforward.runtime`, which has not

    expected = f"`{argument}` must be one typed key such as `jax.random.key(0)`"
    if isinstance(key, int):
        raise TypeError(f"{expected}; got the integer {key}. Write `jax.random.key({key})`.")
    if not isinstance(key, jax.Array):
        raise TypeError(f"{expected}; got {type(key).__name__}.")
    if not jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"{expected}; got an old-style key array of dtype {key.dtype} and shape {key.shape}. "
            "Replace `jax.random.PRNGKey(seed)` by `jax.random.key(seed)`, "
            "or convert it with `jax.random.wrap_key_data(key)`."
        )
    if key.shape != ():
        remedy = f"Pass one of them, or write `{each}`." if each else "Pass one of them."
        raise TypeError(f"{expected}; got an array of keys of shape {key.shape}. {remedy}")


def check_count(value: Any, argument: str, *, at_least: int = 1) -> int:
    """Return `value` as a Python integer, or say why it cannot count anything."""
    wanted = "a positive integer" if at_least == 1 else f"an integer of at least {at_least}"
    try:
        # Arrays have `__index__` whatever they hold, so only calling it tells.
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        hint = f" Write `{argument}={int(value)}`." if isinstance(value, float) and value.is_integer() else ""
        if type(value).__name__.endswith("Tracer"):
            hint = f" Inside `jax.jit` it must be known: `static_argnames={argument!r}`."
        raise TypeError(f"`{argument}` must be {wanted}; got {value!r} ({type(value).__name__}).{hint}")
    if number < at_least:
        raise ValueError(f"`{argument}` must be {wanted}; got {number}.")
    return number


def check_positive(value: Any, argument: str, *, zero: bool = False) -> float:
    """Return `value` as a float that is finite and positive (or zero, where that has a meaning)."""
    wanted = "a finite number of at least 0" if zero else "a finite number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"`{argument}` must be {wanted}; got {value!r} ({type(value).__name__}).")
    if not (0 <= value < float("inf")) or (value == 0 and not zero):
        raise ValueError(f"`{argument}` must be {wanted}; got {value}.")
    return float(value)


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def check_duration(value: Any, argument: str) -> float:
    """Return seconds, given as a number or in words: `"90s"`, `"5m"`, `"1.5h"`."""
    if not isinstance(value, str):
        return check_positive(value, argument)
    number, unit = (value[:-1], value[-1:]) if value[-1:].isalpha() else (value, "")
    try:
        return check_positive(float(number) * _UNITS[unit], argument)
    except (KeyError, ValueError):
        wanted = "a time above 0 in seconds, or such as '90s', '5m' or '1.5h'"
        raise ValueError(f"`{argument}` must be {wanted}; got {value!r}.") from None


def check_name(name: Any, names: Iterable[str]) -> Any:
    """Return `name` if it is among `names`; otherwise raise a `KeyError` with the nearest of them."""
    try:
        return check_choice(name, "name", names)
    except ValueError as error:
        raise KeyError(str(error)) from None


def check_choice(value: Any, argument: str, choices: Iterable[str]) -> str:
    """Return `value` if it is among `choices`; otherwise name the nearest of them."""
    choices = sorted(choices)
    if isinstance(value, str) and value in choices:
        return value
    near = difflib.get_close_matches(str(value), choices, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"`{argument}` must be one of {', '.join(choices)}; got {value!r}.{hint}")
