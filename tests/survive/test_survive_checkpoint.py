"""Stopped anywhere and called again, a fit comes to the very same bits; a checkpoint of another is refused."""

import dataclasses
import shutil
import threading
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.errors import JaxRuntimeError

import pushforward as pf
from pushforward import streaming
from pushforward.checks import check_duration
from pushforward.frame import Frame
from pushforward.latents import NormalMixture
from pushforward.recipe.methods import for_target
from pushforward.recipe.parts import build_parts
from pushforward.run.checkpoint import FOUND, Checkpoint
from pushforward.training import alternating, loop

KEY = jax.random.key(2)
TARGET = pf.targets.rosenbrock()
TINY = pf.preset(
    "kl", frame="identity", width=4, depth=1, score_width=4, score_depth=1, batch_size=16, score_batch_size=16,
    score_steps=1, extra_latents=0, num_steps=100,
)  # fmt: skip


def fit(**options):
    chosen = {} if "method" in options else {"settings": TINY}
    return pf.fit(KEY, TARGET, progress=False, **chosen | options)


def same(one, other):
    """Weights bit by bit, and the history but for the clock."""
    for a, b in zip(jax.tree.leaves(one.sampler), jax.tree.leaves(other.sampler), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    rows = [[{n: v for n, v in row.items() if n != "seconds"} for row in f.history] for f in (one, other)]
    assert rows[0] == rows[1]
    return True


@pytest.fixture(scope="module")
def whole():
    """The fit that was never stopped."""
    return fit()


class StopAt:
    """Stands in for a compiled piece and raises before a given step."""

    def __init__(self, step, error):
        self.step, self.error, self.run = step, error, loop.run_piece

    def __call__(self, algorithm, key, state, total, first, num_steps):
        if int(first) + int(num_steps) > self.step:
            raise self.error
        return self.run(algorithm, key, state, total, first, num_steps)


@pytest.fixture
def stopped(tmp_path, monkeypatch, whole):
    """`stopped(step, error)`: a folder of checkpoints of a fit that ended there."""

    def stop(step, error=KeyboardInterrupt, **options):
        folder = tmp_path / "checkpoint"
        with monkeypatch.context() as patch:
            patch.setattr(loop, "run_piece", StopAt(step, error))
            done = fit(checkpoint=folder, checkpoint_every=0.0, throw=False, **options)
        return folder, done

    return stop


# 1 and 3 are the ends of the first pieces, 40 the end of a row, 100 that of the run.
@pytest.mark.parametrize("step", [0, 1, 3, 40, 41, 77, 99])
def test_a_fit_cut_anywhere_goes_on_to_the_same_bits(stopped, whole, step):
    folder, part = stopped(step)
    assert part.outcome is pf.Outcome.INTERRUPTED
    assert len(part.history) < len(whole.history)
    assert same(fit(checkpoint=folder), whole)


def test_cut_again_and_again(stopped, whole):
    for step in (10, 30, 31, 90):
        folder, _ = stopped(step)
    assert same(fit(checkpoint=folder), whole)
    # And once more when all is done: nothing is left to do.
    assert same(fit(checkpoint=folder), whole)


def test_two_are_kept_and_nothing_else(stopped):
    folder, _ = stopped(80)
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == ".lock"
    assert len(names) == 3
    assert all(name.startswith("state-") for name in names[1:])


@pytest.mark.parametrize("harm", ["truncated", "flipped", "empty", "another"])
def test_a_broken_checkpoint_falls_back_to_the_one_before(stopped, whole, sampler_file, harm):
    folder, _ = stopped(60)
    newest = max(folder.glob("state-*.pf"))
    data = newest.read_bytes()
    flipped = bytearray(data)
    flipped[-9] ^= 4
    newest.write_bytes(
        {
            "truncated": data[:-3],
            "flipped": bytes(flipped),
            "empty": b"",
            "another": sampler_file.read_bytes(),
        }[harm]
    )
    with pytest.warns(UserWarning, match=f"{newest.name} cannot be used"):
        assert same(fit(checkpoint=folder), whole)


def test_all_broken_begins_again(stopped, whole):
    folder, _ = stopped(60)
    for path in folder.glob("state-*.pf"):
        path.write_bytes(b"x")
    with pytest.warns(UserWarning, match="training begins again"):
        assert same(fit(checkpoint=folder), whole)


def test_a_checkpoint_of_another_fit_is_refused_with_the_differences(stopped, unhooked):
    folder, _ = stopped(20)
    with pytest.raises(ValueError, match=r"`recipe\.training\.learning_rate` is 0.001 there and 0.002 here"):
        fit(checkpoint=folder, settings=TINY.replace(learning_rate=0.002))
    with pytest.raises(ValueError, match="`key`"):
        pf.fit(jax.random.key(3), TARGET, settings=TINY, progress=False, checkpoint=folder)

    def almost(x):
        return TARGET.log_density(x) - 0.1 * jnp.sum(x**2)

    other = pf.Target.from_log_density(almost, dim=2, name=TARGET.name)
    with pytest.raises(ValueError, match="other slopes at trial points"):
        pf.fit(KEY, other, settings=TINY, progress=False, checkpoint=folder)


def test_a_folder_serves_one_fit_at_a_time(tmp_path, unhooked):
    held = Checkpoint(tmp_path / "c", {})
    with pytest.raises(ValueError, match="another process is using"):
        Checkpoint(tmp_path / "c", {})
    held.close()
    Checkpoint(tmp_path / "c", {}).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        Checkpoint(tmp_path / "file", {})


def test_a_full_disk_costs_no_training_and_no_older_checkpoint(stopped, whole, monkeypatch):
    folder, _ = stopped(50)
    before = {path.name: path.read_bytes() for path in folder.glob("state-*.pf")}

    def full(fd):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.warns(UserWarning, match="No space left on device"):
            assert same(fit(checkpoint=folder, checkpoint_every=0.0), whole)
    assert {path.name: path.read_bytes() for path in folder.glob("state-*.pf")} == before


def test_what_stages_found_is_found_once(tmp_path):
    mixture = NormalMixture(
        jnp.asarray([0.3, 0.7]), jnp.ones((2, 2)), jnp.stack([jnp.eye(2), 2 * jnp.eye(2)])
    )
    rounds, asked = ({"log_z": 1.5, "temperatures": 3},), []

    def anneal(key, state, recipe, clock):
        asked.append(recipe.annealing.num_particles)
        if asked[-1] > 1024:
            raise JaxRuntimeError("RESOURCE_EXHAUSTED: no")
        yield state.replace(
            frame=Frame.identity(2), latent=mixture, draws=jnp.ones((7, 2)), log_z=-jnp.inf, rounds=rounds
        )

    stages = (pf.Stage("anneal", lambda state, recipe: True, anneal), pf.methods.TRAIN)
    changes = {"frame": "annealed", "num_steps": 4, "annealing.num_particles": 4096}
    method = pf.methods.KL().replace(stages=stages, training=TINY).replace(**changes)
    with pytest.warns(UserWarning, match=r"(2,048|1,024) particles"):
        first = fit(method=method, checkpoint=tmp_path / "c")
    assert asked == [4096, 2048, 1024]
    again = fit(method=method, checkpoint=tmp_path / "c")
    assert len(asked) == 3
    assert same(first, again)
    assert again.phases[0]["rounds"] == list(rounds)
    (tmp_path / "c" / FOUND).write_bytes(b"")
    with pytest.warns(UserWarning, match="annealing begins again|particles"):
        fit(method=method, checkpoint=tmp_path / "c")
    assert len(asked) == 6


# Faults


def test_a_log_density_that_raises_is_a_named_outcome(stopped, whole):
    error = JaxRuntimeError(
        "INTERNAL: callback failed:\nTraceback\n  line\nKeyError: 'the database is gone'\n"
    )
    folder, done = stopped(50, error)
    assert done.outcome is pf.Outcome.FAILED
    assert 0 < len(done.history) < 40
    assert np.isfinite(np.asarray(done.sampler.sample(KEY, 10))).all()
    # Mended, it goes on.
    assert same(fit(checkpoint=folder), whole)


def test_a_callback_that_raises_is_told_in_its_own_words():
    training = threading.Event()

    def value(x):
        if training.is_set():
            raise KeyError("the database is gone")
        return np.float32(-0.5 * np.sum(x**2))

    @jax.custom_jvp
    def log_density(x):
        return jax.pure_callback(value, jax.ShapeDtypeStruct((), jnp.float32), x, vmap_method="sequential")

    log_density.defjvp(lambda primals, tangents: (log_density(*primals), -primals[0] @ tangents[0]))
    target = pf.Target.from_log_density(log_density, dim=2, name="remote")
    with pytest.raises(pf.FitError, match="the database is gone") as caught:
        pf.fit(KEY, target, settings=TINY, progress=False, callback=lambda row: training.set())
    assert caught.value.fit.outcome is pf.Outcome.FAILED


def test_when_memory_runs_out_tiles_are_halved_and_it_says_so(monkeypatch, whole):
    run, seen = loop.run_piece, []

    def greedy(algorithm, *rest):
        tiles = algorithm.step.args[0].tiles
        seen.append(tiles)
        if tiles < 4:
            raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.")
        return run(algorithm, *rest)

    monkeypatch.setattr(loop, "run_piece", greedy)
    with pytest.warns(UserWarning, match=r"in (2|4) tiles"):
        done = fit()
    assert done.outcome is pf.Outcome.FINISHED
    assert seen[:3] == [1, 2, 4]
    # The same batches in pieces: the same path, but for rounding.
    assert done.history[0]["objective"] == pytest.approx(whole.history[0]["objective"], rel=1e-4)


def test_when_no_tile_is_small_enough_the_outcome_says_so(stopped):
    with warnings.catch_warnings(action="ignore"):
        _, done = stopped(50, JaxRuntimeError("RESOURCE_EXHAUSTED: no"))
    assert done.outcome is pf.Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize("method", ["default", "kl"])
def test_gradients_in_tiles_are_those_of_the_batch(method):
    settings = pf.preset(
        method, width=4, depth=1, score_width=4, score_depth=1, batch_size=32, score_batch_size=32
    )
    settings = settings.replace(frame="identity", forward_weight=0.0, extra_latents=0, latent="normal")
    settings = for_target(pf.Recipe(training=settings), TARGET).training
    parts = build_parts(KEY, TARGET, settings, mixture=None, draws=None)
    states = []
    for count in (1, 4):
        algorithm = alternating(dataclasses.replace(parts, tiles=count))
        states.append(jax.jit(lambda a=algorithm: a.step(KEY, a.init(KEY))[1])())
    for name in ("objective", "gradient_norm"):
        assert float(states[0][name]) == pytest.approx(float(states[1][name]), rel=1e-5)


def test_a_budget_is_an_outcome_and_the_next_call_goes_on(tmp_path, whole, monkeypatch):
    ticks = iter(range(10**9))
    with monkeypatch.context() as patch:
        # Every look at the clock takes a second.
        patch.setattr(time, "monotonic", lambda: float(next(ticks)))
        done = fit(checkpoint=tmp_path / "c", budget=60.0)
    assert done.outcome is pf.Outcome.OUT_OF_TIME
    assert 0 < len(done.history) < 40
    assert same(fit(checkpoint=tmp_path / "c"), whole)
    assert [check_duration(each, "budget") for each in (2, "90", "90s", "1.5m", "2h")] == [
        2,
        90,
        90,
        90,
        7200,
    ]
    for bad in (-1.0, "-1m", "m", "5 minutes", "", "nan"):
        with pytest.raises(ValueError, match="budget"):
            fit(budget=bad)


def test_memory_in_drawing_is_halved_too(sampler, monkeypatch):
    expected, draw = np.asarray(sampler.sample(KEY, 140_000)), streaming._draw_groups

    def greedy(parts, key, first, groups):
        if groups > 32:
            raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory.")
        return draw(parts, key, first, groups)

    monkeypatch.setattr("pushforward.streaming._draw_groups", greedy)
    with pytest.warns(UserWarning, match="rows at a time"):
        np.testing.assert_array_equal(sampler.sample(KEY, 140_000), expected)


def test_a_copied_folder_serves_as_well(stopped, whole, tmp_path):
    folder, _ = stopped(33)
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert same(fit(checkpoint=tmp_path / "elsewhere"), whole)
