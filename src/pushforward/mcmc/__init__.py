"""Markov chains and tempered particles, of which the stages of a fit and the check are made."""

from typing import TypeAlias

from jaxtyping import Array, Float, Key

OneKey: TypeAlias = Key[Array, ""]
Points: TypeAlias = Float[Array, "n dim"]
Each: TypeAlias = Float[Array, " n"]
Scalar: TypeAlias = Float[Array, ""]
