"""A process that has compiled very much lets go of it, before the operating system stops it."""

import jax
import jax.numpy as jnp

from pushforward import _cache


def test_programs_are_let_go_when_there_are_many(monkeypatch, tmp_path):
    twice = jax.jit(lambda x: 2 * x)
    twice(jnp.ones(3))
    assert twice._cache_size() == 1
    monkeypatch.setattr(_cache, "MAPS", tmp_path / "maps")
    _cache.let_programs_go()  # no such file: another operating system
    (tmp_path / "maps").write_text("a line\n" * 10)
    _cache.let_programs_go()
    assert twice._cache_size() == 1
    monkeypatch.setattr(_cache, "MANY_MAPS", 5)
    _cache.let_programs_go()
    assert twice._cache_size() == 0
    assert twice(jnp.ones(3)).sum() == 6
