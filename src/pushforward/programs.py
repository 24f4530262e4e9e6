"""What a function does, read from the program that JAX makes of it."""

from collections.abc import Iterator
from typing import Any

TURNS = 10
"""Turns that are assumed of a loop whose number of turns is not known beforehand."""


def equations(program: Any, turns: int = 1) -> Iterator[tuple[Any, int]]:
    """Yield each innermost equation of a jaxpr, and how often it is computed."""
    for equation in program.eqns:
        inside = list(_programs(equation.params.values()))
        if not inside:
            yield equation, turns
        name = equation.primitive.name
        often = equation.params["length"] if name == "scan" else TURNS if name == "while" else 1
        for one in inside:
            yield from equations(one, turns * often)


def _programs(values: Any) -> Iterator[Any]:
    """Yield the programs among an equation's parameters."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _programs(value)
        elif hasattr(value, "eqns"):
            yield value
        elif hasattr(value, "jaxpr") and hasattr(value.jaxpr, "eqns"):
            yield value.jaxpr
