"""A process that has compiled very much lets go of it, before the operating system stops it."""

import jax
import jax.numpy as jnp

from pushforward import programs


def test_programs_are_let_go_when_there_are_many(tmp_path):
    twice = jax.jit(lambda x: 2 * x)
    twice(jnp.ones(3))
    assert twice._cache_size() == 1
    maps = tmp_path / "maps"
    programs.let_programs_go(maps)  # no such file: another operating system
    maps.write_text("a line\n" * 10)
    programs.let_programs_go(maps)
    assert twice._cache_size() == 1
    programs.let_programs_go(maps, most=5)
    assert twice._cache_size() == 0
    assert twice(jnp.ones(3)).sum() == 6
