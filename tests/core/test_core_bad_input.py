"""What users get wrong, caught before any training: the argument named, what came, and what to do.

Annotations are not enforced here, as they are not in a user's session.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pushforward as pf
from pushforward.preflight.checks import require_target
from reproduce.targets import random_target

KEY = jax.random.key(0)

pytestmark = [pytest.mark.usefixtures("unhooked"), pytest.mark.quick_compilation]


def good(x):
    return -0.5 * jnp.sum((x - 1.0) ** 2)


def of_three(x):
    return -0.5 * (x - jnp.ones(3)) @ (x - jnp.ones(3))


def first_two(x):
    return -0.5 * (x[0] ** 2 + 3 * x[1] ** 2)


def broken_slope(x):
    return good(x) + jnp.sqrt(0.0 * x[1])


def complaining(x):
    raise RuntimeError("no such thing")


TARGETS = {
    # name: function, dim, exception, words of the message
    "too few coordinates": (of_three, 2, ValueError, ("shape (2,)", "Check that `dim=2`")),
    "too many coordinates": (first_two, 3, ValueError, ("does not depend on coordinate(s) [2]", "`dim=3`")),
    "vector": (lambda x: -0.5 * x**2, 2, ValueError, ("got shape (2,)", "Sum over the coordinates")),
    "batch": (lambda x: good(x)[None], 2, ValueError, ("got shape (1,)", "do not write it for batches")),
    "nan": (lambda x: good(x) * jnp.nan, 2, ValueError, ("not finite at any", "shift and scale")),
    "-inf": (lambda x: good(x) - jnp.inf, 2, ValueError, ("not finite at any", "`from_log_density(fn, dim=2, bounds=")),
    "+inf": (lambda x: jnp.where(x[0] > 0, jnp.inf, good(x)), 2, ValueError, ("+inf", "missing minus sign")),
    "integers": (lambda x: jnp.sum(x > 0), 2, TypeError, ("floating-point", "int32")),
    "truth": (lambda x: jnp.all(x > 0), 2, TypeError, ("floating-point", "bool")),
    "complex": (lambda x: good(x) + 1j, 2, TypeError, ("floating-point", "complex")),
    "constant": (lambda x: 0.0 * good(x), 2, ValueError, ("gradient zero", "constant")),
    "python constant": (lambda x: 1.0, 2, ValueError, ("gradient zero", "constant")),
    "no gradient": (lambda x: jax.lax.stop_gradient(good(x)), 2, ValueError, ("gradient zero", "stop_gradient")),
    "broken gradient": (broken_slope, 2, ValueError, ("no finite gradient in coordinate(s) [1]", "Look for sqrt")),
    "nothing": (lambda x: None, 2, TypeError, ("must return a scalar array", "NoneType")),
    "text": (lambda x: "high", 2, (TypeError, ValueError), ()),
    "numpy": (lambda x: -np.sum(np.asarray(x) ** 2), 2, ValueError, ("TracerArrayConversionError", "in JAX", "`jnp`")),
    "an error of its own": (complaining, 2, ValueError, ("RuntimeError: no such thing", "Check that `dim=2`")),
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_log_densities_that_cannot_be_trained_on(name):
    fn, dim, error, words = TARGETS[name]
    target = pf.Target.from_log_density(fn, dim=dim, name="mine")
    with pytest.raises(error) as caught:
        pf.fit(KEY, target, progress=False)
    for word in ("`target`", "'mine'", *words):
        assert word in str(caught.value), str(caught.value)


def test_coordinates_go_by_the_names_of_the_model():
    def log_density(p):
        return -0.5 * p["mu"] ** 2 - p["tau"] + jnp.sqrt(0.0 * p["mu"])

    example, limits = {"tau": 1.0, "mu": 0.0, "nu": jnp.ones(2)}, {"tau": "positive"}
    for fn, words in (
        (log_density, "no finite gradient in mu at any"),
        (
            lambda p: -(p["mu"] ** 2) - p["nu"][0] ** 2 - p["tau"],
            r"does not depend on nu\[1\].*Use them in the density",
        ),
    ):
        target = pf.Target.from_log_density(fn, example=example, constraints=limits)
        with pytest.raises(ValueError, match=words):
            pf.fit(KEY, target, progress=False)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (
            {"seed": 3},
            r"takes no argument `seed`\. The key is the seed: write `fit\(jax\.random\.key\(seed\), target\)`",
        ),
        ({"num_steps": 30}, r"takes no argument `num_steps`\. Write `steps=\.\.\.`"),
        ({"width": 30}, r"takes no argument `width`\. Write `method=methods\.Default\(width=\.\.\.\)`"),
        ({"step": 30}, r"takes no argument `step`\. Did you mean `steps`\?"),
        ({"zzz": 30}, r"takes no argument `zzz`\.$"),
    ],
)
def test_arguments_that_are_none_of_fits(argument, words):
    with pytest.raises(TypeError, match=words):
        pf.fit(KEY, pf.targets.gaussian(), progress=False, **argument)


def test_a_method_may_be_the_third_argument():
    done = pf.fit(
        KEY,
        pf.targets.gaussian(),
        pf.methods.KL(frame="identity", width=4, score_width=4),
        steps=2,
        progress=False,
    )
    assert done.settings.method == "kl"
    assert "<td>train</td>" in done._repr_html_()


def test_good_log_densities_pass():
    for fn in (
        good,
        lambda x: jnp.where(x[0] > 4.0, -jnp.inf, good(x)),  # limits are no crime
        lambda x: jnp.where(x[0] > 4.0, jnp.nan, good(x)),  # nor is a corner that is not defined
        lambda x: -jnp.sum(jnp.abs(x)),  # nor a kink
    ):
        require_target(KEY, pf.Target.from_log_density(fn, dim=2))


def test_targets_that_are_none():
    with pytest.raises(
        TypeError,
        match=r"must be a Target; got function\. Make one .*`Target\.from_log_density\(.*`from_numpyro\(",
    ):
        pf.fit(KEY, good, progress=False)
    with pytest.raises(TypeError, match=r"`target` must be a Target; got str\."):
        pf.fit(KEY, "rosenbrock", progress=False)
    with pytest.raises(TypeError, match=r"`fn` must be a function of one point"):
        pf.Target.from_log_density(3, dim=2)
    with pytest.raises(ValueError, match=r"got 'rosenbroc'\. Did you mean 'rosenbrock'\?"):
        pf.targets.get("rosenbroc")


@pytest.mark.parametrize(
    ("dim", "error"),
    [(0, ValueError), (-2, ValueError), (2.5, TypeError), (True, TypeError), ("2", TypeError)],
)
def test_dim_must_count(dim, error):
    with pytest.raises(error, match=r"`dim` must be a positive integer; got"):
        pf.Target.from_log_density(good, dim=dim)


@pytest.mark.parametrize(
    ("steps", "error"),
    [(0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError), ("3", TypeError)],
)
def test_steps_must_count(steps, error):
    with pytest.raises(error, match=r"`steps` must be a positive integer; got"):
        pf.fit(KEY, pf.targets.gaussian(), steps=steps, progress=False)


def test_unknown_methods_suggest_the_nearest():
    for call in (lambda: pf.fit(KEY, pf.targets.gaussian(), method="fischer"), lambda: pf.preset("fischer")):
        with pytest.raises(
            ValueError, match=r"`method` must be one of .*got 'fischer'\. Did you mean 'fisher'\?"
        ):
            call()


def test_settings_must_be_settings():
    with pytest.raises(
        TypeError, match=r"`settings` must be Settings, such as `preset\('kl', width=128\)`; got dict"
    ):
        pf.fit(KEY, pf.targets.gaussian(), settings={"width": 3})


SETTINGS = {
    # change: exception, words
    ("batch_size", 0): (ValueError, ("`batch_size` must be a positive integer; got 0",)),
    ("batch_size", 2.0): (TypeError, ("`batch_size`", "Write `batch_size=2`")),
    ("batch_size", "512"): (TypeError, ("`batch_size` must be a positive integer; got '512'",)),
    ("score_batch_size", -1): (ValueError, ("`score_batch_size`",)),
    ("width", None): (TypeError, ("`width`", "NoneType")),
    ("depth", True): (TypeError, ("`depth`", "bool")),
    ("num_steps", 0): (ValueError, ("`num_steps`",)),
    ("score_steps", 0): (ValueError, ("`score_steps`",)),
    ("latent_dim", 0): (ValueError, ("`latent_dim`",)),
    ("latent_dim", 2.5): (TypeError, ("`latent_dim`",)),
    ("learning_rate", 0.0): (ValueError, ("`learning_rate` must be a finite number above 0",)),
    ("learning_rate", float("nan")): (ValueError, ("`learning_rate`", "nan")),
    ("learning_rate", float("inf")): (ValueError, ("`learning_rate`", "inf")),
    ("learning_rate", "1e-3"): (TypeError, ("`learning_rate`", "'1e-3' (str)")),
    ("sigma", -0.1): (ValueError, ("`sigma`",)),
    ("clip", True): (TypeError, ("`clip`", "bool")),
    ("ema", 1.0): (ValueError, ("`ema` must be below 1; got 1.0",)),
    ("beta1", -0.1): (ValueError, ("`beta1`",)),
    ("activation", "sillu"): (ValueError, ("`activation`", "Did you mean 'silu'?")),
    ("activation", 3): (ValueError, ("`activation`", "got 3")),
    # What is `None` is left open; not all can be.
    ("score_activation", None): (ValueError, ("`score_activation`", "None")),
    ("score_width", None): (TypeError, ("`score_width`", "NoneType")),
    ("score_learning_rate", None): (TypeError, ("`score_learning_rate`", "NoneType")),
    ("score_activation", "gelo"): (ValueError, ("`score_activation`", "Did you mean 'gelu'?")),
    ("objective", "fischer"): (ValueError, ("`objective`", "Did you mean 'fisher'?")),
    ("matching", "slice"): (ValueError, ("`matching`", "Did you mean 'sliced'?")),
    ("matching", "none"): (ValueError, ("`matching`", "needs a score")),
    ("network", "mpl"): (ValueError, ("`network`", "Did you mean 'mlp'?")),
    ("latent", "gaussian"): (ValueError, ("`latent` must be one of mixture, normal, uniform",)),
    ("frame", "identiy"): (ValueError, ("`frame`", "Did you mean 'identity'?")),
    ("fisher_form", "traces"): (ValueError, ("`fisher_form`", "Did you mean 'trace'?")),
    ("tempering", 1.5): (ValueError, ("`tempering` must be at most 1; got 1.5",)),
    ("fisher_weight", 2.0): (ValueError, ("`fisher_weight` must be at most 1",)),
    ("final_rate", 10.0): (ValueError, ("`final_rate` must be at most 1",)),
    ("skip", "yes"): (TypeError, ("`skip` must be True or False; got 'yes'",)),
    ("widht", 3): (ValueError, ("`setting`", "Did you mean 'width'?")),
}


@pytest.mark.parametrize("change", SETTINGS, ids=str)
def test_settings_are_checked_when_built(change):
    error, words = SETTINGS[change]
    with pytest.raises(error) as caught:
        pf.Settings().replace(**dict([change]))
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("objective", ["fisher", "combined", "fisher_stein"])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_fisher_refuses_a_score_net_without_second_derivatives(objective, activation):
    with pytest.raises(
        ValueError, match=rf"`score_activation` must be twice differentiable.*'{activation}'.*Use 'silu'"
    ):
        pf.Settings(objective=objective, score_activation=activation)
    # The sampler itself may be piecewise linear, and so may the score net of the other objectives.
    pf.Settings(objective=objective, activation=activation)
    pf.Settings(score_activation=activation)


def test_projection_form_needs_first_derivatives_only():
    settings = pf.Settings(
        objective="fisher", fisher_form="projection", matching="denoising", score_activation="leaky_relu"
    )
    with pytest.raises(ValueError, match="must be twice differentiable"):
        settings.replace(objective="fisher_stein")  # whose critic needs its divergence whatever the form


@pytest.mark.parametrize("objective", ["fisher", "combined"])
@pytest.mark.parametrize("matching", ["exact", "sliced", "kernel"])
def test_projection_form_refuses_a_score_of_another_law(objective, matching):
    with pytest.raises(ValueError, match=rf"`matching='denoising'` fits; got matching='{matching}'"):
        pf.Settings(objective=objective, fisher_form="projection", matching=matching)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_exact_kl_refuses_a_map_with_kinks(activation):
    with pytest.raises(ValueError, match=rf"`activation` must be twice differentiable.*'{activation}'"):
        pf.Settings(objective="exact_kl", matching="none", activation=activation)


def test_method_and_settings_must_agree():
    with pytest.raises(ValueError, match=r"`method` is 'fisher' but `settings` are those of 'kl'"):
        pf.fit(KEY, pf.targets.gaussian(), method="fisher", settings=pf.preset("kl"))


def test_parts_that_need_annealed_particles():
    with pytest.raises(ValueError, match=r"`latent='mixture'`.*needs `frame='annealed'`"):
        pf.Settings(latent="mixture", frame="identity")
    with pytest.raises(ValueError, match=r"`forward_weight`.*needs `frame='annealed'`"):
        pf.Settings(forward_weight=1.0, frame="identity")


@pytest.mark.parametrize("number", [6, 7, 10, 31])
def test_what_rises_for_long_towards_its_mass_is_not_improper(number):
    # Bent and with long tails, shifted to thousands of its scales: at the origin it rises along some axes.
    require_target(jax.random.key(number), random_target(number))


def test_a_prior_that_overflows_far_out_is_not_improper():
    # The log density of an inverse gamma's logarithm is -2 y - e^-y; far out 1 / e^y overflows.
    def overflowing(x):
        scale = jnp.exp(x[0])
        return -2.0 * x[0] - jnp.where(scale > 0, 1.0 / scale, -jnp.inf) - 0.5 * x[1] ** 2

    for seed in range(4):
        require_target(jax.random.key(seed), pf.Target.from_log_density(overflowing, dim=2))
