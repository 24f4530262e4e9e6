"""Any number of threads may draw from one sampler at once: each gets what it would get alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.sampler import Sampler, load

THREADS = 16


def test_threads_draw_what_each_would_draw_alone(sampler):
    keys = [jax.random.key(seed) for seed in range(THREADS)]
    sizes = [100 + 1500 * i for i in range(THREADS)]
    alone = [np.asarray(sampler.sample(key, n)) for key, n in zip(keys, sizes, strict=True)]
    barrier = threading.Barrier(THREADS)

    def draw(i):
        barrier.wait()
        return [np.asarray(sampler.sample(keys[i], sizes[i])) for _ in range(3)]

    with ThreadPoolExecutor(THREADS) as pool:
        for got, expected in zip(pool.map(draw, range(THREADS)), alone, strict=True):
            for draws in got:
                np.testing.assert_array_equal(draws, expected)


def test_the_first_draws_of_all_may_come_at_the_same_time(tmp_path):
    # Another size than any other test's, so that nothing of it is compiled yet.
    made = Sampler(Normal(3), mlp(jax.random.key(0), 3, 3, width=5, depth=1), Frame.identity(3))
    made.save(tmp_path / "s.pf")
    barrier = threading.Barrier(THREADS)

    def draw(i):
        barrier.wait()
        one = load(tmp_path / "s.pf") if i % 2 else made
        return np.asarray(one.sample(jax.random.key(7), 300))

    with ThreadPoolExecutor(THREADS) as pool:
        got = list(pool.map(draw, range(THREADS)))
    for draws in got:
        np.testing.assert_array_equal(draws, got[0])


def test_streams_may_be_read_in_turns(sampler):
    key = jax.random.key(3)
    expected = np.asarray(sampler.sample(key, 9000))
    streams = [sampler.stream(key, 9000), sampler.stream(key, 9000)]
    blocks: list[list[np.ndarray]] = [[], []]
    for pair in zip(*streams, strict=True):
        for held, block in zip(blocks, pair, strict=True):
            held.append(block)
    for held in blocks:
        np.testing.assert_array_equal(np.concatenate(held), expected)
