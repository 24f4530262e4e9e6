"""A sampler's promises: draw `i` depends on the key and `i` alone, two compilations, one file."""

import concurrent.futures
import contextlib
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward import streaming
from pushforward.frame import Frame
from pushforward.latents import Normal, NormalMixture, Uniform
from pushforward.networks import mlp, modulated
from pushforward.parameters import Parameter, Parameters
from pushforward.sampler import Sampler

KEY = jax.random.key(77)


def mixture():
    return NormalMixture(
        weights=jnp.asarray([0.2, 0.8]),
        means=jnp.asarray([[0.0, 1.0], [2.0, -3.0]]),
        choleskys=jnp.asarray([[[1.0, 0.0], [0.3, 0.7]], [[0.5, 0.0], [-0.2, 2.0]]]),
    )


def frame():
    return Frame(
        centre=jnp.asarray([1.0, -2.0]),
        scale=jnp.asarray([0.3, 4.0]),
        bend=jnp.asarray([0.0, 0.6]),
        shift=jnp.asarray([0.1, -0.2]),
        matrix=jnp.asarray([[1.0, 0.0], [0.5, 2.0]]),
    )


SAMPLERS = {
    "mlp of a normal": lambda: Sampler(Normal(2), mlp(KEY, 2, 2, width=8, skip=True), frame()),
    "mlp of a longer uniform": lambda: Sampler(Uniform(3), mlp(KEY, 3, 2, width=16), frame()),
    "modulated mixture": lambda: Sampler(mixture(), modulated(KEY, 2, width=8), frame()),
}
MANY = 200_000


@pytest.fixture(scope="module")
def many():
    """`many(name)`: a sampler and its first 200,000 draws, made once."""
    made = {}

    def make(name):
        if name not in made:
            sampler = SAMPLERS[name]()
            made[name] = sampler, np.asarray(sampler.sample(KEY, MANY))
        return made[name]

    return make


@contextlib.contextmanager
def compilations():
    """The names of all programs compiled inside the block."""
    names = []

    def listen(event, duration, **about):
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(about.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield names
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_draw_depends_on_the_key_and_its_place_alone(name, many):
    sampler, whole = many(name)
    for n in (1, 10, 1_023, 1_024, 1_025, 5_000, 70_000):
        np.testing.assert_array_equal(np.asarray(sampler.sample(KEY, n)), whole[:n], err_msg=str(n))
    assert np.any(np.asarray(sampler.sample(jax.random.key(78), 10)) != whole[:10])
    assert len(np.unique(whole, axis=0)) > 0.99 * MANY  # no block is repeated


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_are_the_map_of_the_latent_law(name, many):
    """Moments against latents drawn and mapped by hand.

    Five differences for each of three samplers, each beyond 5 standard errors with probability 6e-7:
    one new key in 110,000 fails.
    """
    sampler, whole = many(name)
    z = sampler.latent.sample(jax.random.key(79), 20_000)
    other = np.asarray(jax.vmap(lambda one: sampler.frame(sampler.network(one)))(z), np.float64)

    def worst(a, b):
        def features(x):
            # The bent coordinate has heavy tails: moments of its arcsinh.
            x = np.arcsinh(x)
            return np.stack([x[:, 0], x[:, 1], x[:, 0] ** 2, x[:, 1] ** 2, x[:, 0] * x[:, 1]], 1)

        a, b = features(a), features(b)
        gap = a.mean(0) - b.mean(0)
        return np.abs(gap / np.sqrt(a.var(0) / len(a) + b.var(0) / len(b))).max()

    assert worst(whole, other) < 5
    assert worst(whole, 1.1 * other) > 5  # planted


def test_a_stream_is_the_sample_in_blocks_of_bounded_size(many):
    sampler, whole = many("mlp of a normal")
    for n in (1, 5_000, MANY):
        blocks = list(sampler.stream(KEY, n))
        np.testing.assert_array_equal(np.concatenate(blocks), whole[:n])
        assert max(block.size for block in blocks) <= 2**18
        assert all(isinstance(block, np.ndarray) for block in blocks)


def test_two_programs_whatever_is_asked_for():
    # Sizes that no other test uses, so that nothing is compiled yet.
    network = mlp(KEY, 2, 2, width=7)
    sampler = Sampler(Normal(2), network, frame())
    jax.block_until_ready(jax.tree.leaves(sampler))
    sizes = [1, 2, 3, 1_024, 1_025, 4_097, 33_000, 70_001, 131_072, 140_000]
    with compilations() as names:
        for n in sizes:
            sampler.sample(KEY, n)
        # The same sampler with another story, and another with other weights: nothing new.
        Sampler(Normal(2), network, frame(), '{"target": "x"}').sample(KEY, 5)
        Sampler(Normal(2), jax.tree.map(lambda a: 2 * a, network), frame()).sample(KEY, 5)
    drawing = [name for name in names if "draw" in name]
    assert len(drawing) == 2, names
    with compilations() as names:
        for n in [7, 99, 40_000, 77_777]:
            sampler.sample(KEY, n)
    assert names == []


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_number_asked_for_again_and_again_gets_a_program_and_the_same_draws(name, many):
    first, whole = many(name)
    # A sampler of its own: another test's calls do not count.
    sampler = Sampler(first.latent, first.network, first.frame)
    for n in (10, 1_500, 40_000):
        for _ in range(streaming.OFTEN):
            np.testing.assert_array_equal(sampler.sample(KEY, n), whole[:n])
        with compilations() as names:
            found = sampler.sample(KEY, n)
        assert len([each for each in names if "draw" in each]) == 1, names
        np.testing.assert_array_equal(found, whole[:n])
        with compilations() as names:
            again = sampler.sample(jax.random.key(8), n)
            later = sampler.sample(KEY, n, start=3)
            Sampler(first.latent, first.network, first.frame, '{"target": "x"}').sample(KEY, n)
        assert names == []
        np.testing.assert_array_equal(later, whole[3 : n + 3])
        np.testing.assert_array_equal(again, np.concatenate(list(sampler.stream(jax.random.key(8), n))))
    # What is kept beside the sampler does not go with it.
    copied = pickle.loads(pickle.dumps(sampler))
    np.testing.assert_array_equal(copied.sample(KEY, 10), whole[:10])
    assert jax.tree.structure(copied) == jax.tree.structure(sampler)


def test_bad_arguments_are_refused_however_often_the_number_was_asked_for(unhooked):
    sampler = SAMPLERS["mlp of a normal"]()
    for _ in range(streaming.OFTEN + 2):
        sampler.sample(KEY, 3)
    for bad in (3.0, True):
        with pytest.raises((TypeError, ValueError), match=r"`num_samples` must be a positive integer"):
            sampler.sample(KEY, bad)
    with pytest.raises(TypeError, match=r"`key` must be one typed key"):
        sampler.sample(jax.random.PRNGKey(0), 3)


def test_sobol_draws():
    sampler = SAMPLERS["modulated mixture"]()
    whole = np.asarray(sampler.sample(KEY, 10_000, latents="sobol"))
    for n in (1, 4_096, 4_097):
        np.testing.assert_array_equal(np.asarray(sampler.sample(KEY, n, latents="sobol")), whole[:n])
    np.testing.assert_array_equal(np.concatenate(list(sampler.stream(KEY, 10_000, latents="sobol"))), whole)
    assert np.any(np.asarray(sampler.sample(jax.random.key(1), 10, latents="sobol")) != whole[:10])
    # They are a scrambled Sobol set under the inverse of frame and (identity) network: its mean is
    # nearer the truth than 10,000 independent draws could be expected to come (0.02).
    u = np.asarray(jax.vmap(sampler.frame.inverse)(jnp.asarray(whole[:8_192])), np.float64)
    np.testing.assert_allclose(u.mean(0), [0.2 * 0 + 0.8 * 2, 0.2 * 1 - 0.8 * 3], atol=5e-3)


def test_threads_draw_what_one_draws_alone(many):
    name = "mlp of a longer uniform"
    sampler, _ = many(name)
    keys = list(jax.random.split(jax.random.key(5), 6))
    alone = [np.asarray(sampler.sample(key, 3_000)) for key in keys]
    # Another of other sizes, so that the threads also meet at its compilation.
    fresh = Sampler(Uniform(3), mlp(KEY, 3, 2, width=9), frame())
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda key: np.asarray(sampler.sample(key, 3_000)), keys))
        first = list(pool.map(lambda key: np.asarray(fresh.sample(key, 10)), keys))
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(first, [np.asarray(fresh.sample(key, 10)) for key in keys])


def test_one_point_goes_through_network_and_frame():
    sampler, z = SAMPLERS["mlp of a normal"](), jnp.asarray([0.3, -1.0])
    np.testing.assert_array_equal(sampler(z), sampler.frame(sampler.network(z)))
    assert (sampler.dim, sampler.about) == (2, {})


def test_a_sampler_is_shown_in_a_line():
    about = '{"target": "banana<b>", "method": "kl", "outcome": "FINISHED", "settings": {"width": 8}}'
    names = Parameters((Parameter("mu"), Parameter("theta", (2, 3)), Parameter("tau", (), "positive")))
    sampler = Sampler(Normal(8), mlp(KEY, 8, 8, width=8), Frame.identity(8), about, names)
    assert repr(sampler) == "Sampler(banana<b>, kl, FINISHED, Normal(8) -> MLP -> mu, theta[2, 3], tau)"
    assert "<td>banana&lt;b&gt;</td>" in sampler._repr_html_()
    plain = Sampler(Normal(8), mlp(KEY, 8, 8, width=8), Frame.identity(8))
    assert repr(plain) == str(plain) == "Sampler(Normal(8) -> MLP -> 8 coordinates)"


def test_the_map_is_a_function_for_jax(unhooked):
    sampler, z = SAMPLERS["mlp of a normal"](), jnp.asarray([0.3, -1.0])
    close(sampler([0.3, -1.0]), sampler(z))
    close(jax.jit(sampler)(z), sampler(z))
    close(jax.jit(jax.vmap(sampler))(jnp.stack([z, 2 * z])), [sampler(z), sampler(2 * z)])
    slope, step = jax.grad(lambda z: jnp.sum(sampler(z)))(z), 1e-2 * jnp.eye(2)
    np.testing.assert_allclose(
        slope, [jnp.sum(sampler(z + e) - sampler(z - e)) / 2e-2 for e in step], rtol=0.02
    )
    keys = jax.random.split(KEY, 3)
    close(jax.vmap(sampler.sample, in_axes=(0, None))(keys, 10)[1], sampler.sample(keys[1], 10))
    with pytest.raises(ValueError, match=r"one latent of shape \(2,\); got shape \(\)"):
        sampler(1.0)


def test_parts_must_fit_together():
    for latent, network, place in [
        (Normal(3), mlp(KEY, 2, 2, width=4), frame()),
        (Normal(2), mlp(KEY, 2, 3, width=4), frame()),
    ]:
        with pytest.raises(ValueError, match=r"latent \(\d\), network \(\d -> \d\).*frame \(2\).* must fit"):
            Sampler(latent, network, place)


BAD_COUNTS = [(0, ValueError), (-1, ValueError), (2.5, TypeError), (2.0, TypeError), (True, TypeError),
              ("3", TypeError), (None, TypeError), (np.asarray([1, 2]), TypeError)]  # fmt: skip


@pytest.mark.parametrize("method", ["sample", "stream"])
@pytest.mark.parametrize(("n", "error"), BAD_COUNTS, ids=lambda value: repr(value))
def test_counts_that_do_not_count(unhooked, method, n, error):
    sampler = SAMPLERS["mlp of a normal"]()
    with pytest.raises(error, match=r"`num_samples` must be a positive integer; got") as caught:
        getattr(sampler, method)(KEY, n)  # a stream too says so at once
    if n is BAD_COUNTS[3][0]:
        assert "Write `num_samples=2`" in str(caught.value)


@pytest.mark.parametrize("n", [np.int64(3), jnp.asarray(3), np.asarray(3)], ids=["numpy", "jax", "array"])
def test_integers_of_other_makes_count(unhooked, many, n):
    sampler, whole = many("mlp of a normal")
    np.testing.assert_array_equal(sampler.sample(KEY, n), whole[:3])


BAD_KEYS = {
    "integer": (lambda: 3, r"got the integer 3\. Write `jax\.random\.key\(3\)`"),
    "old style": (
        lambda: jax.random.PRNGKey(0),
        r"got an old-style key array.*Replace `jax\.random\.PRNGKey\(seed\)`",
    ),
    "several": (lambda: jax.random.split(KEY), r"got an array of keys of shape \(2,\)\. Pass one of them"),
    "none": (lambda: None, r"got NoneType"),
    "numpy": (lambda: np.zeros(2, np.uint32), r"got ndarray"),
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_keys_that_are_not_one_typed_key(unhooked, name):
    make, message = BAD_KEYS[name]
    sampler = SAMPLERS["mlp of a normal"]()
    for draw in (sampler.sample, sampler.stream, lambda key, n: pf.fit(key, pf.targets.gaussian(), steps=n)):
        with pytest.raises(
            TypeError, match=r"`key` must be one typed key such as `jax\.random\.key\(0\)`; " + message
        ):
            draw(make(), 3)


def test_unknown_latents_suggest_the_nearest(unhooked):
    with pytest.raises(
        ValueError, match=r"`latents` must be one of iid, sobol; got 'sobel'\. Did you mean 'sobol'\?"
    ):
        SAMPLERS["mlp of a normal"]().sample(KEY, 3, latents="sobel")


def test_many_keys_are_mapped_over(unhooked):
    with pytest.raises(
        TypeError,
        match=r"Pass one of them, or write `jax\.vmap\(lambda key: sampler\.sample\(key, n\)\)\(keys\)`",
    ):
        SAMPLERS["mlp of a normal"]().sample(jax.random.split(KEY), 3)


# Inside programs that JAX makes: the same draws.


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SAMPLERS)
def test_under_jit_the_draws_are_the_same(name, many):
    sampler, whole = many(name)
    for n, start in ((10, 0), (1_024, 0), (5_000, 3_000)):
        expected = whole[start : start + n]
        close(jax.jit(lambda key, n=n, start=start: sampler.sample(key, n, start=start))(KEY), expected)
        # A key known beforehand is part of the program too.
        close(jax.jit(lambda n=n, start=start: sampler.sample(KEY, n, start=start))(), expected)
    close(jax.jit(sampler.sample, static_argnums=1)(KEY, 10), whole[:10])
    close(eqx.filter_jit(lambda sampler, key: sampler.sample(key, 10))(sampler, KEY), whole[:10])


@pytest.mark.parametrize("name", SAMPLERS)
def test_under_vmap_every_key_gives_its_draws(name):
    sampler, keys = SAMPLERS[name](), jax.random.split(jax.random.key(6), 3)
    expected = [sampler.sample(key, 10) for key in keys]
    close(jax.vmap(lambda key: sampler.sample(key, 10))(keys), expected)
    close(jax.jit(jax.vmap(lambda key: sampler.sample(key, 10)))(keys), expected)


def test_gradients_go_through_draws():
    sampler = SAMPLERS["mlp of a normal"]()

    def mean(sampler):
        return jnp.mean(sampler.sample(KEY, 50))

    slopes = eqx.filter_grad(mean)(sampler)
    bias = sampler.network.biases[-1]
    step = 1e-2 * jnp.ones_like(bias)
    ends = [eqx.tree_at(lambda s: s.network.biases[-1], sampler, bias + e) for e in (step, -step)]
    np.testing.assert_allclose(
        jnp.sum(slopes.network.biases[-1]), (mean(ends[0]) - mean(ends[1])) / 2e-2, rtol=0.01
    )


def test_named_draws_under_jit():
    names = Parameters((Parameter("tau", (), "positive"), Parameter("mu")))
    sampler = Sampler(Normal(2), mlp(KEY, 2, 2, width=8), frame(), parameters=names)
    inside = jax.jit(lambda key: sampler.draws(key, 10))(KEY)
    for name in names.names:
        close(inside[name], sampler.draws(KEY, 10)[name])


def test_what_cannot_be_part_of_a_program(unhooked):
    sampler = SAMPLERS["mlp of a normal"]()
    with pytest.raises(ValueError, match=r"from SciPy.*draw outside of them, or use `latents=\"iid\"`"):
        jax.jit(lambda key: sampler.sample(key, 4, latents="sobol"))(KEY)
    with pytest.raises(TypeError, match=r"`stream` yields NumPy arrays.*use `sample`"):
        jax.jit(lambda key: next(sampler.stream(key, 4)))(KEY)
    with pytest.raises(TypeError, match=r"`num_samples` must be.*known: `static_argnames='num_samples'`"):
        jax.jit(sampler.sample)(KEY, 4)
