"""The house: how large it may be, what stands in which file, and what it weighs.

`python tests/test_house.py` writes the layers of pyproject.toml into DESIGN.md.
"""

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "pushforward": ROOT / "src" / "pushforward",
    "reproduce": ROOT / "reproduce" / "src" / "reproduce",
}

# Lines that a package may have, those of its files at the top together. Only ever lowered; where a number must
# rise, DESIGN.md says why.
BUDGETS = {
    "pushforward": {
        ".": 3455,
        "cli": 1860,
        "draws": 1230,
        "export": 260,
        "matching": 175,
        "mcmc": 550,
        "metrics": 295,
        "models": 695,
        "networks": 305,
        "objectives": 420,
        "parameters": 925,
        "preflight": 1030,
        "recipe": 3105,
        "run": 1130,
        "runs": 310,
        "runtime": 575,
        "targets": 570,
        "training": 540,
        "trust": 2080,
        "payback": 370,
    },
    "reproduce": {
        ".": 605,
        "cli": 305,
        "data": 480,
        "images": 630,
        "metrics": 295,
        "noise": 455,
        "report": 2730,
        "rivals": 1000,
        "studies": 6340,
        "targets": 1585,
    },
}
# The goal for the library is 18,000 lines.
TOTALS = {"pushforward": 19_850, "reproduce": 14_400}

METHOD = ("recipe", "run", "training", "mcmc", "objectives", "matching", "networks")
METHOD_LINES = 6_220
"""The goal is 6,000."""

LONGEST_FILE, LONGEST_FUNCTION = 250, 60

TABLE = ("recipe/table.py", "recipe/finding.py", "recipe/settings.py", "recipe/closing.py")
MOST_CONSTANTS = 60
"""Numeric constants of modules in the library; in the method, outside of its table, there are none."""

MOST_PATCHES = 10
"""Places at which tests replace something of ours: faults that cannot be planted otherwise."""

MOST_LOADED = 80
"""Files of ours that a fit loads."""

MOST_BYTES = 400_000


def files(package=None):
    """Yield each source file's name and text."""
    for name, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")) if package in (None, name) else ():
            yield f"{name}/{path.relative_to(folder).as_posix()}", path.read_text(encoding="utf-8")


def lines(text):
    return len(text.splitlines())


@pytest.fixture(scope="module")
def counts():
    found = {name: Counter() for name in PACKAGES}
    for place, text in files():
        package, *parts = place.split("/")
        found[package][parts[0] if len(parts) > 1 else "."] += lines(text)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_keeps_its_budget(counts, package):
    budget, found = BUDGETS[package], counts[package]
    # A package without a number, and a number without a package, are both out of date.
    assert set(found) == set(budget)
    over = {part: (n, budget[part]) for part, n in found.items() if n > budget[part]}
    assert not over, f"{package}: lines and the most there may be: {over}"
    assert found.total() <= TOTALS[package]


def test_the_method_keeps_its_budget(counts):
    assert sum(counts["pushforward"][part] for part in METHOD) <= METHOD_LINES


def test_files_are_short():
    over = {place: lines(text) for place, text in files() if lines(text) > LONGEST_FILE}
    assert not over


def test_functions_are_short():
    over = {}
    for place, text in files():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = node.end_lineno - node.lineno + 1
                if count > LONGEST_FUNCTION:
                    over[f"{place}:{node.name}"] = count
    assert not over


def is_number(node):
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(is_number(each) for each in node.elts)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def constants(text):
    """Return the lines of a module that give a number a name."""
    assigned = [node for node in ast.parse(text).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    return [node.lineno for node in assigned if node.value is not None and is_number(node.value)]


def test_a_constant_is_seen_where_there_is_one():
    assert constants("A = 2**-3\nB, C = 1, (2.0, -3)\nD: float = 4.0\nE = len('x')\nF = 'x'\n") == [1, 2, 3]


def test_numbers_of_the_method_stand_in_its_table():
    found = {place.removeprefix("pushforward/"): constants(text) for place, text in files("pushforward")}
    method = {p: c for p, c in found.items() if c and p.split("/")[0] in METHOD and p not in TABLE}
    assert not method
    assert sum(len(c) for p, c in found.items() if p not in TABLE) <= MOST_CONSTANTS


def test_tests_replace_little_of_ours():
    """A patch of a module or a class of ours, by object or by name; environments and other packages are free."""
    patches = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        ours = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
                ours |= {each.asname or each.name for each in node.names}
            elif isinstance(node, ast.Import):
                ours |= {
                    each.asname or each.name.split(".")[0]
                    for each in node.names
                    if each.name.split(".")[0] in PACKAGES
                }
        for node in ast.walk(tree):
            is_patch = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("setattr", "setitem")
            if is_patch and node.args:
                words = ast.unparse(node.args[0])
                root = words.strip("'\"").split(".")[0].split("(")[0]
                if root in ours or root in PACKAGES:
                    patches.append(f"{path.relative_to(ROOT)}:{node.lineno} {words}")
    assert len(patches) <= MOST_PATCHES, patches


def test_a_fit_loads_little():
    fit = """
import sys, jax, pushforward as pf
target = pf.Target.from_log_density(lambda x: -0.5 * x @ x, dim=2)
pf.fit(jax.random.key(0), target, method=pf.methods.Default(**{"annealing.num_particles": 512}), steps=2,
       throw=False)
print(len([name for name in sys.modules if name.split(".")[0] == "pushforward"]))
"""
    done = subprocess.run([sys.executable, "-c", fit], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= MOST_LOADED


@pytest.mark.parametrize("place", [".", "runtime"])
def test_what_users_install_is_light(place, tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / place, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < MOST_BYTES


BEGIN, END = "<!-- layers -->\n", "<!-- end of layers -->\n"


def layers():
    """Return the layers of pyproject.toml as Markdown."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = told["tool"]["importlinter"]["contracts"]
    blocks = ["\n".join(each["layers"]) for each in contracts if each["type"] == "layers"]
    return "\n".join(f"```\n{block}\n```\n" for block in blocks)


def written():
    """Return DESIGN.md with the layers as they are."""
    before, _, rest = (ROOT / "DESIGN.md").read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + layers() + END + rest.partition(END)[2]


def test_the_design_tells_the_layers_as_they_are():
    text = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
    assert text == written(), "run `python tests/test_house.py`"
    assert lines(text) <= 250


if __name__ == "__main__":
    (ROOT / "DESIGN.md").write_text(written(), encoding="utf-8")
