"""What a new user stumbles over: numbers, times, places and files that are read alike everywhere."""

import jax
import numpy as np
import pytest
from cli_sizes import TINY

import pushforward as pf
from pushforward.cli.errors import reported
from pushforward.trust.line import Line
from pushforward.trust.report import Report


def test_counts_and_times_are_read_alike_by_every_command(invoke, run_folder, tmp_path):
    out = tmp_path / "run"
    assert (
        invoke("fit", "gaussian", *TINY, "--steps", "1e0", "--dim", "2e0", "--out", out, "-q").exit_code == 0
    )
    assert pf.load(out).dim == 2
    assert invoke("sample", out, "-n", "1_0", "--out", tmp_path / "d.npy", "-q").exit_code == 0
    assert np.load(tmp_path / "d.npy").shape == (10, 2)
    for words in (["check", "--draws", "1e1"], ["break-even", "--dim", "1.5"], ["demo", "--steps", "half"]):
        result = invoke(words[0], *([run_folder] if words[0] != "demo" else []), *words[1:])
        assert result.exit_code == 2
        assert "must be a whole number of at least" in result.stderr.replace("│\n│ ", "")
    assert "'90s', '5m' or '1.5h'" in invoke("break-even", run_folder, "--budget", "soon").stderr


def test_a_run_folder_is_as_good_as_the_sampler_in_it(run_folder):
    key = jax.random.key(0)
    np.testing.assert_array_equal(
        pf.load(run_folder).sample(key, 3), pf.load(run_folder / "sampler.pf").sample(key, 3)
    )


@pytest.mark.parametrize("suffix", ["npz", "npy", "csv", "parquet", "nc"])
def test_a_folder_that_does_not_exist_is_named_as_it_was_given(run_folder, tmp_path, suffix):
    path = tmp_path / "no" / f"d.{suffix}"
    with pytest.raises(FileNotFoundError, match=f"there is no folder {path.parent} for {path}"):
        pf.load(run_folder).draws(jax.random.key(0), 3).save(path)
    with pytest.raises(FileNotFoundError, match=f"there is no folder {path.parent} for"):
        pf.load(run_folder).save(path.with_name("s.pf"))


def change(old, new):
    return lambda data: data.replace(old, new)


BROKEN = {
    "no header": (lambda data: b"hello, this is a letter", "it does not begin as one"),
    "nothing": (lambda data: b"", "it does not begin as one"),
    "a bad shape": (change(b"(50, 2)", b"(5x, 2)"), "its header does not describe an array"),
    "a wrong key": (change(b"'shape'", b"'shabe'"), "its header does not describe an array"),
    "a wrong size": (change(b"(50, 2)", b"(51, 2)"), "truncated or corrupted; write it again"),
    "a wrong version": (lambda data: data[:6] + b"\x09" + data[7:], "versions 1 to 3 can be read"),
    "a header cut off": (lambda data: data[:40], "its header does not describe an array"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_header_is_told_in_plain_words(invoke, tmp_path, fault):
    path = tmp_path / "draws.npy"
    np.save(path, np.ones((50, 2), np.float32))
    spoil, words = BROKEN[fault]
    path.write_bytes(spoil(path.read_bytes()))
    result = invoke("show", path)
    assert result.exit_code == 2
    assert words in result.stderr
    assert str(path) in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_examples_stand_on_lines_of_their_own(invoke):
    def command():
        """Do it.

        [bold]Examples[/bold]
          pushforward a
          pushforward b
        """

    assert reported(command).__doc__.count("\n\n          pushforward") == 2
    lines = [line.strip() for line in invoke("fit", "--help").stdout.splitlines()]
    assert "pushforward fit rosenbrock" in lines


def test_in_a_notebook_a_report_is_a_page():
    line = Line(
        name="support", title="Support", statistic=0.0, measure="of 10", null="0", found="None is.", advice=""
    )
    report = Report(
        target="mine", kind="sampler", num_draws=10, num_judged=10, level=0.01, lines=(line,), seconds=1.0
    )
    assert "<h3>Check of mine" in report._repr_html_()
