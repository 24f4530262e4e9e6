import pytest
from cli_sizes import TINY

from pushforward.cli.errors import CommandError
from pushforward.cli.specs import find_target
from pushforward.runs import load_run

MODEL = """
import jax.numpy as jnp
import pushforward as pf
from helper import SCALE

def log_density(x):
    return -0.5 * jnp.sum((x / SCALE) ** 2)

def broken(x):
    y = x + 1
    return jnp.sum(y @ jnp.ones((7, 7)))

def vector(x):
    return x

def make():
    return pf.Target.from_log_density(log_density, dim=4, name="made")

def nothing():
    return None

target = make()
constant = 3

class Mine:
    def __init__(self, x): pass
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "helper.py").write_text("SCALE = 2.0\n")
    (folder / "model.py").write_text(MODEL)
    return folder / "model.py"


def test_a_function_is_fitted(invoke, model, tmp_path):
    out = tmp_path / "run"
    result = invoke("fit", f"{model}:log_density", "--dim", 3, *TINY, "--out", out, "--quiet")
    assert result.exit_code == 0, result.output
    run = load_run(out)
    assert run.about["target"] == {"spec": f"{model}:log_density", "name": "log_density", "dim": 3}
    # There are no exact draws to compare with, so the KSD stands alone.
    assert list(run.about["metrics"]) == ["ksd_imq_v", "inside"]
    assert "floor" not in run.about["metrics"]["ksd_imq_v"]
    assert run.sampler().dim == 3


def test_a_target_or_what_makes_one_says_its_own_size(model):
    assert find_target(f"{model}:target", None).dim == 4
    assert find_target(f"{model}:make", 4).name == "made"
    assert find_target("gaussian", 7).dim == 7


@pytest.mark.parametrize(
    ("name", "dim", "message"),
    [
        (":log_density", None, "--dim is needed"),
        (":log_densty", 2, "Did you mean 'log_density'?"),
        ("", 2, "It defines log_density, broken, vector"),
        (":constant", 2, "it is int"),
        (":Mine", 2, "is a class"),
        (":nothing", 2, "must return a Target; it returned NoneType"),
        (":target", 5, "--dim must be 4"),
    ],
)
def test_what_is_no_target_is_explained(model, name, dim, message):
    with pytest.raises(CommandError, match=message.replace("?", r"\?")):
        find_target(f"{model}{name}", dim)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import jax\n\nx = 1 / 0\n", "model.py, line 3: ZeroDivisionError: division by zero"),
        ("def f(x:\n", "line 1: this is not Python"),
        ("import nowhere_to_be_found\n", "line 1: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
        ("def f():\n    raise KeyError('k')\n", "line 2: KeyError: 'k'"),
    ],
)
def test_an_error_in_the_file_is_one_message_with_its_line(invoke, tmp_path, text, message):
    (tmp_path / "model.py").write_text(text)
    result = invoke("fit", f"{tmp_path / 'model.py'}:f", "--dim", 2, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert len(result.stderr.splitlines()) == 1


def test_an_error_in_the_function_names_its_line(invoke, model, tmp_path):
    result = invoke("fit", f"{model}:broken", "--dim", 2, *TINY, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "model.py, line 11" in result.stderr
    assert "dim=2" in result.stderr
    assert not (tmp_path / "run").exists()
