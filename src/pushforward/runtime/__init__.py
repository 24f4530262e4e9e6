"""Draw from a saved sampler with NumPy alone: no JAX, no compilation, a fraction of a second to import.

    from pushforward import runtime

    sampler = runtime.load("rosenbrock.pf")
    draws = sampler.sample(0, 1_000_000)       # a seed or a `numpy.random.Generator`
    same = sampler(latents)                    # what JAX makes of the same latents, to rounding

The draws have the law that JAX's have and are not the same points: NumPy's generators are its own.
"""

from pushforward.container import BadFileError as BadFileError
from pushforward.runtime.latents import Law as Law
from pushforward.runtime.latents import law as law
from pushforward.runtime.reading import load as load
from pushforward.runtime.sampler import Sampler as Sampler
