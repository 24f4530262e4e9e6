"""Named draws: what a loaded sampler gives without its model, and what can be done with it."""

import json
import sys

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import pushforward as pf
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.parameters import Parameter, Parameters
from pushforward.sampler import Sampler

KEY = jax.random.key(0)
RECORD = Parameters(
    (
        Parameter("mu"),
        Parameter("tau", (), "positive"),
        Parameter("w", (2, 3), "simplex", dims=("school", "part")),
        Parameter("p", (2,), "interval", low=(0.0, -1.0), high=2.0, dims=("school",)),
    ),
    coords=(("school", ("A", "B")),),
)


@pytest.fixture
def unhooked():
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def sampler():
    network = mlp(KEY, 8, 8, width=4, depth=1, activation="silu", skip=True)
    return Sampler(Normal(8), network, Frame.identity(8), json.dumps({"target": "made"}), RECORD)


@pytest.fixture(scope="module")
def draws(sampler):
    return sampler.draws(KEY, 50)


def gaussian(x):
    return (
        -0.5 * jnp.sum((x[:2] - jnp.array([1.0, -2.0])) ** 2 / jnp.array([1.0, 9.0])) - 0.5 * x[0] * x[2] ** 2
    )


def named(p):
    return -0.5 * p["mu"] ** 2 - p["tau"]


def test_draws_are_named_constrained_and_those_of_sample(sampler, draws):
    np.testing.assert_array_equal(draws.unconstrained, sampler.sample(KEY, 50))
    assert draws.names == ("mu", "tau", "w", "p")
    assert [draws[name].shape for name in draws] == [(50,), (50,), (50, 2, 3), (50, 2)]
    np.testing.assert_allclose(draws["tau"], np.exp(draws.unconstrained[:, 1]), rtol=1e-6)
    np.testing.assert_allclose(draws["w"].sum(-1), 1.0, rtol=1e-5)
    assert np.all((draws["p"] > np.array([0.0, -1.0])) & (draws["p"] < 2.0))
    assert len(draws) == 50
    assert repr(draws) == "Draws(50 draws: mu, tau, w[2, 3], p[2])"
    assert {leaf.shape[0] for leaf in jax.tree.leaves(draws)} == {50}  # a pytree, draws along the first axis
    assert list(dict(draws)) == ["mu", "tau", "w", "p"]
    assert "mu" in draws
    assert "nu" not in draws
    assert draws.get("nu") is None
    assert draws.get("mu") is draws["mu"]
    with pytest.raises(KeyError, match="Did you mean 'tau'"):
        draws["tua"]


def test_as_an_array_they_are_the_coordinates_that_targets_see(sampler, draws):
    np.testing.assert_array_equal(np.asarray(draws), sampler.sample(KEY, 50))
    assert np.asarray(draws, np.float64).dtype == np.float64
    plain = pf.Draws.of(jnp.ones((3, 2)))
    np.testing.assert_array_equal(np.asarray(plain), plain["x"])


def test_as_a_table_of_pandas_every_number_has_a_column(draws, monkeypatch):
    table = draws.to_pandas()
    assert list(table)[:4] == ["mu", "tau", "w[0,0]", "w[0,1]"]
    np.testing.assert_array_equal(table["w[1,2]"], draws["w"][:, 1, 2])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"`to_pandas` needs `pandas`.*`pip install pandas`"):
        draws.to_pandas()


def test_a_summary_of_every_number(draws):
    summary = draws.summary()
    assert list(summary)[:3] == ["mu", "tau", "w[0,0]"]
    assert len(summary) == 10
    tau = np.asarray(draws["tau"], np.float64)
    np.testing.assert_allclose(summary["tau"]["mean"], tau.mean())
    np.testing.assert_allclose(summary["tau"]["sd"], tau.std(ddof=1))
    np.testing.assert_allclose(summary["tau"]["95 %"], np.quantile(tau, 0.95))
    with pytest.raises(KeyError, match="Did you mean 'tau'"):
        summary["tua"]
    lines = str(summary).splitlines()
    assert lines[0].split() == [
        "50",
        "draws",
        "mean",
        "sd",
        "5",
        "%",
        "25",
        "%",
        "50",
        "%",
        "75",
        "%",
        "95",
        "%",
    ]
    assert lines[2].split()[:2] == ["tau", f"{tau.mean():.4g}"]
    assert len({len(line) for line in lines}) == 1  # columns stand below each other
    assert "hat" not in str(summary)
    many = pf.Draws.of(jnp.ones((2, 100))).summary()
    assert str(many).splitlines()[-1] == "... and 60 more"


def test_in_a_notebook_they_are_tables(draws):
    assert "<td>w</td><td>[2, 3]</td><td>simplex</td>" in draws._repr_html_()
    assert "<th>mean</th>" in draws.summary()._repr_html_()
    odd = pf.Draws.of(jnp.ones((3, 1)), Parameters((Parameter("<b>"),)))
    assert "<b>" not in odd._repr_html_() + odd.summary()._repr_html_()
    assert len(repr(pf.Draws.of(jnp.ones((3, 60)), many_names(60)))) < 120


def many_names(count):
    return Parameters(tuple(Parameter(f"p{i}") for i in range(count)))


def test_a_loaded_sampler_names_its_draws_without_the_model(sampler, draws, tmp_path):
    sampler.save(tmp_path / "s.pf")
    loaded = pf.load(tmp_path / "s.pf")
    assert loaded.parameters == RECORD
    np.testing.assert_array_equal(loaded.draws(KEY, 50)["w"], draws["w"])


def test_a_sampler_without_names_gives_x_and_its_file_is_as_before(sampler, tmp_path):
    plain = Sampler(sampler.latent, sampler.network, sampler.frame)
    assert plain.draws(KEY, 5).names == ("x",)
    plain.save(tmp_path / "s.pf")
    assert b"parameters" not in (tmp_path / "s.pf").read_bytes()
    assert pf.load(tmp_path / "s.pf").parameters is None


@pytest.mark.parametrize(
    "names", ["[]", '{"items": []}', json.dumps({"items": [{"name": "a", "kind": "os"}], "coords": []})]
)
def test_names_that_are_none_are_refused(sampler, tmp_path, names):
    from pushforward import files

    parts = {
        "latent": sampler.latent,
        "network": sampler.network,
        "frame": sampler.frame,
        "parameters": names,
    }
    files.dump(tmp_path / "s.pf", parts, {})
    with pytest.raises(pf.BadFileError, match="does not describe a sampler"):
        pf.load(tmp_path / "s.pf")


def test_names_must_fit_the_frame(sampler):
    with pytest.raises(ValueError, match=r"parameters \(3\) and frame \(8\) must fit"):
        Sampler(sampler.latent, sampler.network, sampler.frame, "{}", Parameters.plain(3))


def test_arviz_has_one_labelled_chain_and_claims_no_more(draws):
    data = draws.to_arviz()
    assert data.posterior["w"].dims == ("chain", "draw", "school", "part")
    assert data.posterior.sizes["chain"] == 1
    assert data.posterior["school"].values.tolist() == ["A", "B"]
    assert "R-hat has no meaning" in data.posterior.attrs["draws"]
    assert data.groups() == ["posterior"]  # no acceptance, no divergences: nothing of the kind took place
    np.testing.assert_array_equal(data.posterior["tau"].values[0], draws["tau"])


def test_sobol_draws_are_not_called_independent(sampler):
    assert "not independent" in sampler.draws(KEY, 8, latents="sobol").to_arviz().posterior.attrs["draws"]


def test_thinning_keeps_rows_together():
    target = pf.targets.rosenbrock()
    pool = pf.Draws.of(target.sample(KEY, 400), stats={"number": jnp.arange(400)})
    few = pool.thin(20, target)
    assert len(few) == 20
    np.testing.assert_array_equal(few["x"], np.asarray(pool["x"])[np.asarray(few.stats["number"])])
    assert "not independent" in few.to_arviz(target).posterior.attrs["draws"]


def test_another_target_is_refused(draws, unhooked):
    with pytest.raises(ValueError, match="with 8 coordinates; 'rosenbrock' has 2"):
        draws.thin(5, pf.targets.rosenbrock())
    other = pf.Target.from_log_density(named, example={"mu": np.zeros(7), "tau": 1.0})
    with pytest.raises(ValueError, match=r"whose parameters are mu\[\] real, tau\[\] positive"):
        draws.refine(KEY, other)
    with pytest.raises(TypeError, match="`target` must be a Target; got function"):
        draws.refine(KEY, named)
    with pytest.raises(ValueError, match="nothing to derive"):
        pf.Draws.of(jnp.zeros((3, 2))).derive(pf.targets.rosenbrock())


# Refinement


def moments(x):
    return np.asarray(x).mean(0), np.asarray(x).std(0)


@pytest.fixture(scope="module")
def banana():
    return pf.targets.banana()


@pytest.mark.parametrize("kernel", ["mala", "hmc"])
def test_refinement_keeps_draws_of_the_target_and_mends_others(banana, kernel):
    """2,000 exact draws; a mean moves by at most 5 standard errors (false failures: about 1e-6)."""
    exact = banana.sample(KEY, 2000)
    kept = pf.Draws.of(exact).refine(KEY, banana, steps=20, kernel=kernel)
    (mean, sd), (mean0, sd0) = moments(kept["x"]), moments(exact)
    assert np.all(np.abs(mean - mean0) < 5 * sd0 * np.sqrt(2 / 2000))
    assert np.all(np.abs(sd / sd0 - 1) < 0.15)
    refined = kept.about["refined"]
    assert (refined["kernel"], refined["steps"], refined["not_finite"]) == (kernel, 20, 0)
    assert abs(refined["acceptance"] - {"mala": 0.574, "hmc": 0.8}[kernel]) < 0.2
    assert kept.stats["acceptance"].shape == (2000,)
    # The same test sees draws that are off, and refinement brings them back.
    off = exact + jnp.asarray(1.0) * jnp.std(exact, axis=0)
    back = pf.Draws.of(off).refine(KEY, banana, steps=20, kernel=kernel)
    assert not np.all(np.abs(moments(off)[0] - mean0) < 5 * sd0 * np.sqrt(2 / 2000))
    assert np.all(np.abs(moments(back["x"])[0] - mean0) < 0.8 * np.abs(moments(off)[0] - mean0))


def test_refinement_of_named_draws_stays_inside_the_constraints(draws):
    target = pf.Target.from_log_density(
        lambda p: named(p) + jnp.sum(jnp.log(p["w"])),
        example={"mu": 0.0, "tau": 1.0, "w": np.ones((2, 3)), "p": np.zeros(2)},
        constraints={"tau": "positive", "w": "simplex", "p": ("interval", [0.0, -1.0], 2.0)},
    )
    own = draws.refine(KEY, target, steps=3)
    assert own.names == target.parameters.names
    np.testing.assert_allclose(own["w"].sum(-1), 1.0, rtol=1e-5)
    data = own.to_arviz(target)
    assert set(data.sample_stats.data_vars) == {"acceptance", "lp"}
    np.testing.assert_allclose(
        data.sample_stats["lp"].values[0, 0], target.log_density(own.unconstrained[0]), rtol=1e-5
    )


def test_draws_at_which_the_target_is_not_finite_stay_and_are_counted(banana):
    half = pf.Target.from_log_density(lambda x: jnp.where(x[0] > 50.0, jnp.nan, banana.log_density(x)), dim=2)
    x = banana.sample(KEY, 64).at[3, 0].set(60.0)
    found = pf.Draws.of(x).refine(KEY, half, steps=3)
    np.testing.assert_array_equal(found["x"][3], x[3])
    assert found.about["refined"]["not_finite"] == 1
    assert np.isfinite(found["x"]).all()
    nowhere = pf.Target.from_log_density(lambda x: jnp.sum(x) * jnp.nan, dim=2, name="nowhere")
    with pytest.raises(ValueError, match="'nowhere' is not finite at any of the 64 draws"):
        pf.Draws.of(x).refine(KEY, nowhere, steps=3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"steps": 0}, "`steps`"), ({"kernel": "nuts"}, "one of hmc, mala"), ({"warmup": 1}, "`warmup`")],
)
def test_arguments_of_refine_are_checked(banana, arguments, words):
    with pytest.raises(ValueError, match=words):
        pf.Draws.of(jnp.zeros((3, 2))).refine(KEY, banana, **arguments)
