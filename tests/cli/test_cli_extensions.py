"""Commands, targets and samplers of another package: found where it is installed, named where it is not."""

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import pushforward
from pushforward.extensions import REPRODUCE, extensions
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import MLP
from pushforward.sampler import Sampler
from pushforward.targets import TARGETS
from reproduce.noise import add_noise

ROOT = Path(__file__).parents[2]
HELP = """
import sys
from pushforward.cli import app
app(["--help"], standalone_mode=False)
sys.exit("jax" in sys.modules or "matplotlib" in sys.modules)
"""
ALONE = "import sys; sys.path.insert(0, sys.argv.pop(1)); from pushforward.cli import main; main()"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """`alone("fit", "lj13")`: run a command where all is installed but the second package."""
    packages = tmp_path_factory.mktemp("packages")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "reproduce" not in entry.name and entry.suffix != ".pth" and entry.name != "pushforward":
            (packages / entry.name).symlink_to(entry)
    (packages / "pushforward").symlink_to(Path(pushforward.__file__).parent)

    def run(*words):
        command = [sys.executable, "-I", "-S", "-c", ALONE, str(packages), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_the_table_names_what_the_second_package_offers():
    told = tomllib.loads((ROOT / "reproduce" / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {group: sorted(names) for group, names in REPRODUCE.items()} == {
        group: sorted(entries) for group, entries in told.items()
    }
    for group, names in REPRODUCE.items():
        assert {name: extensions(group)[name].value for name in names} == told[group]


def test_targets_of_both_packages_are_in_one_table(invoke):
    assert TARGETS["lj13"]().dim == 39
    assert "rosenbrock" in TARGETS
    assert len(TARGETS) == len(set(TARGETS)) == 22
    assert "lj13" in invoke("targets").stdout


def test_the_help_names_all_commands_and_needs_no_jax():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f" {command} " in done.stdout for command in ("fit", *REPRODUCE["pushforward.commands"]))


@pytest.mark.parametrize(
    "words",
    [
        ("study", "two-d", "--preset", "smoke"),
        ("report", "--help"),
        ("demo",),
        ("sample", "mnist", "-n", 4, "--out", "grid.png"),
        ("fit", "lj13"),
    ],
)
def test_what_is_not_installed_is_code_2_and_says_how_to_get_it(alone, words):
    done = alone(*words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert "pip install '.[reproduce]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_with_a_network_of_another_package_says_what_to_install(alone, tmp_path):
    path = tmp_path / "noisy.pf"
    net = MLP((jnp.eye(2),), (jnp.zeros(2),), "silu", skip=False)
    add_noise(jax.random.key(0), Sampler(Normal(2), net, Frame.identity(2))).save(path)
    done = alone("sample", path, "-n", 4, "--out", tmp_path / "draws.npz")
    assert done.returncode == 2, done.stderr
    assert "'NoiseHead' comes with the package `pushforward-reproduce`, which is not installed" in done.stderr


def test_the_library_alone_lists_what_it_has(alone):
    assert " study " not in alone("--help").stdout
    listed = alone("targets").stdout
    assert "rosenbrock" in listed
    assert "lj13" not in listed
    assert "Did you mean 'sample'?" in alone("sampel").stderr


def test_a_page_needs_the_extra_plots(invoke, run_folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = invoke("check", run_folder, "--html", tmp_path / "check.html")
    assert result.exit_code == 2
    assert "pip install 'pushforward[plots]'" in result.stderr


def test_the_second_package_runs_without_the_script():
    words = [sys.executable, "-m", "reproduce", "study", "two-d", "--preset", "smoke", "--plan"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "parameters in the sampler" in done.stdout
