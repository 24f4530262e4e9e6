"""A recipe is a value: changed by name, told as JSON, known by a digest."""

import json
import subprocess
import sys

import jaxtyping
import numpy as np
import pytest

import pushforward as pf
from pushforward.frozen import Record
from pushforward.recipe import methods
from pushforward.recipe.table import Annealing, Recipe

OTHER = {
    "training.method": "mine", "training.frame": "identity", "training.latent": "uniform",
    "training.network": "coupled", "training.activation": "tanh", "training.matching": "sliced",
    "training.score_activation": "tanh", "training.objective": "ksd", "training.fisher_form": "projection",
    "maps.activation": "tanh",
}  # fmt: skip


@pytest.fixture
def unhooked():
    """No annotations enforced, as in a user's session, who may write 1 where 1.0 is meant."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def value_of(recipe, path):
    for name in path.split("."):
        recipe = getattr(recipe, name)
    return recipe


def leaves():
    """Every field that is no record of others."""
    recipe = Recipe()
    return [path for path in recipe.names() if not isinstance(value_of(recipe, path), Record)]


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return (changed(value[0]), *value[1:])
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.5 * value if value else 0.25
    return 7


def test_the_digest_is_that_of_the_numbers_alone():
    assert Recipe().digest() == Recipe().digest() == Recipe().replace().digest()
    assert Recipe().replace(**{"search.looks": 7}).replace(**{"search.looks": 2**20}) == Recipe()
    words = "from pushforward.recipe.table import Recipe; print(Recipe().digest())"
    for seed in ("1", "2"):
        other = subprocess.run(
            [sys.executable, "-c", words], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert other.stdout.strip() == Recipe().digest()


def test_any_number_changes_the_digest():
    recipe, digests, paths = Recipe(), set(), leaves()
    assert len(paths) > 200
    for path in paths:
        other = OTHER[path] if path in OTHER else changed(value_of(recipe, path))
        found = recipe.replace(**{path: other})
        assert value_of(found, path) == other
        assert found.changes(recipe) == {path: other}
        digests.add(found.digest())
    assert recipe.digest() not in digests
    assert len(digests) == len(paths)


@pytest.mark.parametrize("name", methods.METHODS)
def test_a_recipe_is_json_and_back(name):
    plain = methods.METHODS[name].recipe.plain()
    assert json.loads(json.dumps(plain)) == plain


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"tempering": 1}, {"tempering": 1.0}),
        ({"num_steps": np.int64(7)}, {"num_steps": 7}),
        ({"rise": [0.15, 0.4]}, {"rise": (0.15, 0.4)}),
        ({"learning_rate": np.float64(0.5)}, {"learning_rate": 0.5}),
        ({"annealing": {"num_sweeps": 3}}, {"annealing.num_sweeps": 3}),
        ({"annealing": Annealing(num_sweeps=3)}, {"annealing.num_sweeps": 3}),
        ({"training.width": 9}, {"width": 9}),
    ],
)
def test_equal_recipes_have_equal_digests(unhooked, one, other):
    first, second = Recipe().replace(**one), Recipe().replace(**other)
    assert first == second
    assert first.digest() == second.digest()
    assert json.loads(json.dumps(first.plain())) == second.plain()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("num_step", "num_steps"),
        ("annealing.num_particle", "annealing.num_particles"),
        ("serach", "search"),
        ("search.look", "search.looks"),
        ("num_particle", "annealing.num_particles"),
        ("widht", "width"),
    ],
)
def test_an_unknown_name_is_an_error_that_says_what_was_meant(name, remedy):
    with pytest.raises(ValueError, match=rf"Did you mean '{remedy}'\?$"):
        Recipe().replace(**{name: 1})
    with pytest.raises(ValueError, match="Did you mean"):
        methods.Default(**{name: 1})


def test_an_unknown_name_inside_a_record_is_an_error_too():
    with pytest.raises(ValueError, match=r"Did you mean 'num_particles'\?"):
        Recipe().replace(annealing={"num_particle": 1})
    with pytest.raises(ValueError, match=r"Did you mean 'width'\?"):
        pf.preset("kl", widht=1)


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        Recipe().search.looks = 7  # pyright: ignore[reportAttributeAccessIssue]


def test_changes_are_those_from_the_methods_own():
    method = methods.KL(width=9, **{"annealing.num_sweeps": 3})
    assert methods.changes_of(method.recipe) == {"width": 9, "annealing.num_sweeps": 3}
    again = methods.KL(**methods.changes_of(method.recipe))
    assert again.recipe == method.recipe
