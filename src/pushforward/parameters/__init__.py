"""Names, shapes and constraints of a target's parameters, and the maps to and from R^dim.

Nothing here needs JAX or NumPyro: a loaded sampler gives named draws without the model it was trained on.
"""

from pushforward.lazy import attach

__getattr__, __dir__ = attach(__name__)
