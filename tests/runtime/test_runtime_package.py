"""`pushforward-runtime`: a wheel that draws where there is NumPy and nothing else."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from runtime_cases import named

from pushforward import runtime

ROOT = Path(__file__).parents[2]
DRAW = """
import sys
sys.path[:0] = sys.argv[1:3]
from pushforward import runtime
sampler = runtime.load(sys.argv[3])
print(runtime.__file__)
print(sorted(sampler.draws(0, 10)), float(sampler.sample(0, 10).sum()))
import pushforward
try:
    pushforward.fit
except ImportError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT / "runtime", check=True, capture_output=True)
    (made,) = folder.glob("pushforward_runtime-*.whl")
    return made


def test_the_wheel_draws_where_nothing_but_numpy_can_be_imported(wheel, tmp_path):
    named().save(tmp_path / "s.pf")
    others = tmp_path / "packages"
    others.mkdir()
    for folder in Path(np.__file__).parents[1].glob("numpy*"):
        (others / folder.name).symlink_to(folder)
    # Isolated and without site-packages, whatever this process was started with.
    words = [sys.executable, "-I", "-S", "-c", DRAW, str(wheel), str(others), str(tmp_path / "s.pf")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    place, drawn, refusal = done.stdout.splitlines()
    assert str(wheel) in place
    sampler = runtime.load(tmp_path / "s.pf")
    assert drawn == f"{sorted(sampler.draws(0, 10))} {float(sampler.sample(0, 10).sum())}"
    assert "`pushforward.fit` needs the package `pushforward`" in refusal
