import re
import subprocess
import sys
from importlib import metadata

import pytest

from pushforward.recipe.methods import METHODS
from pushforward.targets import TARGETS


def _words(text):
    """Text without the boxes and line breaks of the help."""
    return re.sub(r"[\s│╭╮╰╯─]+", " ", text)


def test_the_version_is_that_of_the_package(invoke):
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"pushforward {metadata.version('pushforward')}\n")


@pytest.mark.parametrize("command", ["targets", "fit", "sample", "show", "demo"])
def test_every_command_explains_itself(invoke, command):
    assert command in invoke("--help").stdout
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert f"pushforward {command}" in result.stdout or f"{command} [OPTIONS]" in result.stdout


def test_the_help_of_fit_names_every_method(invoke):
    text = _words(invoke("fit", "--help").stdout)
    for method in METHODS:
        assert re.search(rf"\b{method}\b", text), method


def test_every_target_is_listed_with_its_size_and_a_description(invoke):
    result = invoke("targets")
    assert result.exit_code == 0
    for name, build in TARGETS.items():
        assert re.search(rf"^{name} +{build().dim}[* ] +(yes|no) +\S+", result.stdout, re.MULTILINE), name


def test_no_command_and_a_wrong_one_are_code_2(invoke):
    assert invoke().exit_code == 2
    assert invoke("sampel").exit_code == 2


def test_the_command_line_itself_imports_nothing_that_only_commands_need():
    code = (
        "import sys, pushforward.cli; "
        "print([m for m in ('matplotlib', 'blackjax', 'numpyro', 'scipy.stats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
