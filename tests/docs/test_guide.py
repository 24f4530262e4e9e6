"""Every example of the guide is run: Python as it stands but with small trainings, commands as far as parsing."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

import pushforward as pf
from pushforward.cli import app

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
# The smallest network that is one, and no particles: what is tested here is that the pages are right.
SMALL = {"frame": "identity", "width": 8, "depth": 1, "score_width": 8, "score_depth": 1, "num_steps": 4,
         "batch_size": 16, "score_batch_size": 16}  # fmt: skip


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def small_fit(key, target, **options):
    """A small training in place of whatever is asked for."""
    return pf.fit(key, target, settings=pf.preset("steingan", **SMALL), progress=False)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem
)
def test_python(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "guide", "small_fit": small_fit}
    for number, code in enumerate(blocks(page, "python"), start=1):
        small = re.sub(r"\bpf\.fit\(", "small_fit(", code)
        exec(compile(small, f"{page.name}, block {number}", "exec"), names)


COMMANDS = [
    (page.name, line.partition("#")[0].strip())
    for page in PAGES
    for block in blocks(page, "bash")
    for line in block.splitlines()
    if line.startswith("pushforward ")
]


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=lambda word: word if "pushforward" in word else "")
def test_commands(page, line):
    """The command exists and takes these options; a misspelt one raises."""
    _, name, *words = shlex.split(line)
    command = typer.main.get_command(app).get_command(None, name)
    command.make_context(name, words)


def test_a_misspelt_option_is_seen():
    commands = typer.main.get_command(app).commands
    with pytest.raises(Exception, match="No such option"):
        commands["show"].make_context("show", ["runs/x", "--jsno"])


def test_links_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
