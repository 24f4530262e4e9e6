"""No key is used twice in a fit: every use of one is written down as it happens, in compiled programs too."""

import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick import quick

import pushforward as pf
from pushforward.latents import standard
from pushforward.recipe import methods
from pushforward.recipe.stages import Stage

pytestmark = pytest.mark.quick_compilation

KEY = jax.random.key(11)
DRAWS = ("bits", "normal", "uniform", "randint", "permutation", "choice", "categorical", "bernoulli", "exponential",
         "gumbel", "split")  # fmt: skip


class Uses:
    """What was done with each key: drawn from, split, or folded with a number."""

    def __init__(self):
        self.of = defaultdict(list)

    def note(self, what, where, key, *data):
        """Write one use down; in a program, when that runs."""
        words = jax.random.key_data(key)
        if any(isinstance(each, jax.core.Tracer) for each in (words, *data)):
            jax.debug.callback(partial(self._add, what, where), words, *data)
        else:
            self._add(what, where, words, *data)

    def _add(self, what, where, words, *data):
        for row in np.asarray(words).reshape(-1, 2):
            self.of[row.tobytes()].append((what, where, *(int(np.asarray(each)) for each in data)))

    def twice(self):
        """Return the places where a key was used that was used before or after as well.

        A key may be folded with many numbers, each of them once, or be drawn from once, or be split once.
        """
        found = set()
        for uses in self.of.values():
            folds = [use for use in uses if use[0] == "fold_in"]
            others = [use for use in uses if use[0] != "fold_in"]
            again = len({use[2] for use in folds}) < len(folds)
            if len(others) > 1 or (others and folds) or again:
                found.add(tuple(sorted({f"{use[0]} at {use[1]}" for use in uses})))
        return sorted(found)


def place():
    """Return the innermost line of the package, or of this file, that is being run."""
    frame = sys._getframe(2)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if "pushforward" in path.parts or path == Path(__file__):
            return f"{path.name}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


@pytest.fixture
def uses(monkeypatch):
    """All uses of keys while the test runs; programs compiled before say nothing, and are forgotten."""
    found = Uses()

    def noted(name, function):
        def wrapped(key, *arguments, **words):
            found.note(name, place(), key)
            return function(key, *arguments, **words)

        return wrapped

    def folded(function):
        def wrapped(key, data):
            found.note("fold_in", place(), key, data)
            return function(key, data)

        return wrapped

    jax.clear_caches()
    for name in DRAWS:
        monkeypatch.setattr(jax.random, name, noted(name, getattr(jax.random, name)))
    monkeypatch.setattr(jax.random, "fold_in", folded(jax.random.fold_in))
    yield found
    monkeypatch.undo()
    jax.clear_caches()


SMALL = {
    "annealing.num_particles": 64, "num_steps": 3, "width": 4, "batch_size": 8, "search.num_walks": 16,
    "search.rounds": 2, "search.round_steps": 20, "search.newton_steps": 3, "search.looks": 64, "path.enough": 2.0,
    "annealing.num_sweeps": 2, "annealing.most_temperatures": 3, "maps.rounds": 2, "maps.steps_first": 2, "maps.steps_next": 2,
    "maps.steps_to_choose": 2, "maps.batch_size": 8, "maps.good": 2.0, "judge.learnt": 2.0,
    "reweight.num_draws": 256, "reweight.marginal_steps": 2, "law.steps": 3,
    # One look during training: all looks are at the same latents, so that rows differ by the network alone.
    "clock.rows": 1,
}  # fmt: skip


def two_modes(dim):
    return pf.Target.from_log_density(
        lambda x: jnp.logaddexp(-0.5 * jnp.sum((x - 2.0) ** 2), -0.5 * jnp.sum((x + 2.0) ** 2)), dim=dim
    )


def fit(target, method):
    done = pf.fit(KEY, target, method=method, progress=False, throw=False)
    jax.effects_barrier()
    return done


def test_no_key_of_a_default_fit_is_used_twice(uses):
    """In so few dimensions that proposals could be adapted, which is told not to be done."""
    done = fit(two_modes(5), quick(**SMALL | {"fallback.most_dim": 1, "adapt.most_dim": 1}))
    phases = [phase["phase"] for phase in done.phases]
    assert phases == ["search", "path", "anneal", "residual", "maps", "train", "reweight"]
    assert len(uses.of) > 500
    assert uses.twice() == []


@pytest.mark.parametrize("name", ["kl", "fisher", "ksd"])
def test_no_key_of_the_papers_methods_is_used_twice(uses, name):
    tiny = {
        "frame": "identity",
        "latent": "normal",
        "score_width": 4,
        "score_batch_size": 8,
        "score_steps": 2,
    }
    few = {name: SMALL[name] for name in ("num_steps", "width", "batch_size", "clock.rows")}
    fit(two_modes(2), methods.make(name, **tiny, **few, extra_latents=0))
    assert uses.twice() == []


def test_no_key_of_the_fallback_is_used_twice(uses):
    walk = {"levels": 3, "num_leapfrog": 2, "crowd": 2, "heating": 2, "num_warmup": 4, "piece": 2, "thin": 2,
            "least_pieces": 2, "usual_pieces": 2, "most_pieces": 2, "spread": 2, "stride": 2}  # fmt: skip
    from pushforward.recipe.fallback import around_particles

    draws = jax.random.normal(jax.random.key(0), (256, 4))
    recipe = pf.Recipe().replace(fallback={"num_steps": 3, **walk})
    around_particles(KEY, two_modes(4), draws, recipe)
    jax.effects_barrier()
    assert len(uses.of) > 30
    assert uses.twice() == []


def again(key, state, recipe, clock):
    """A stage that chooses a sampler by some draws, and judges it by the same."""
    one, other = jax.random.split(key)
    for _ in range(2):
        jax.jit(lambda: jax.random.normal(one, (3,)))()
    jax.lax.scan(
        lambda c, i: (c + jax.random.uniform(jax.random.fold_in(other, i // 2)), None), 0.0, jnp.arange(4)
    )
    yield state.replace(latent=standard(state.dim))


def test_a_key_that_is_used_twice_is_seen(uses):
    planted = Stage("again", lambda state, recipe: True, again)
    fit(two_modes(2), methods.Annealed().replace(stages=(planted,)))
    found = uses.twice()
    assert len(found) == 3
    assert all("test_keys_once.py" in use for places in found for use in places)
    words = " ".join(use for places in found for use in places)
    assert "normal" in words
    assert "fold_in" in words
    assert "uniform" in words
