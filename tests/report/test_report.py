import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from report_fakes import header

import pushforward
from reproduce.records import Record, read, write
from reproduce.report import write_report
from reproduce.report.bars import bars_table
from reproduce.report.cells import Cells, read_results, short, times
from reproduce.report.demo import demo_figure
from reproduce.report.section import Table


def table_named(text, words):
    """Return a Markdown table as {row: cells}."""
    part = text.split(f"## {words}", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:]}


def test_the_report_needs_no_jax():
    # `import pushforward` brings JAX along; the report itself must not need it, so it is imported alone.
    source = Path(pushforward.__file__).parent
    code = (
        "import sys, types; p = types.ModuleType('pushforward'); "
        f"p.__path__ = [{str(source)!r}]; sys.modules['pushforward'] = p; "
        "import reproduce.report; "
        "assert not {'jax', 'equinox', 'jaxlib'} & set(sys.modules), 'jax was imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_hold_what_the_records_say(results, tmp_path):
    write_report(results, tmp_path / "docs")
    text = (tmp_path / "docs" / "two_d.md").read_text()
    fixed = table_named(text, "Table 1: KSD, a fixed checkpoint")
    # The mean of three seeds: 0.100, 0.101 and 0.102 over a floor of 0.1.
    assert fixed["kl"]["mog2"] == "0.101 ± 0.020 (1.01x)"
    assert fixed["fisher"]["donut"].endswith("(1.50x)")
    assert fixed["paper: kl"]["mog2"] == "0.104 ± 0.015"
    assert fixed["paper: ld"]["funnel"] == "-"
    assert fixed["paper: ld"]["published_funnel"] == "0.116 ± 0.029"
    pairs = table_named(text, "Sliced W2 to exact draws")
    assert pairs["kl"]["mog2"] == "0.0600 (3.00x)"
    ratios = table_named(text, "Table 2: ratios to KL-NS")
    assert ratios["svgd"]["mog2"] == "20,000x"
    assert ratios["paper: svgd"]["gaussian"] == "18,871x"
    moments = table_named(text, "Better than independent")
    assert moments["means: times smaller"]["gaussian"] == "16.00x"
    assert "never" in text
    assert text.count("pushforward study two_d --preset cpu") > 5


def test_bars_are_computed_from_the_records(results):
    rows = {row[0]: row[1:] for row in bars_table(Cells(read(results / "two_d.jsonl")[1])).rows}
    assert rows["KL-NS: KSD at most 1.05 x floor"][0] == "met"
    verdict, tightest, misses = rows["Fisher-NS: KSD at most 1.15 x floor"]
    assert verdict == "missed on 1 of 6"
    assert tightest == "donut 1.50 (bar 1.15)"
    assert misses == "donut 1.50"
    verdict, _, misses = rows["MOG2: ratio of compiled LD, HMC, SVGD to KL-NS at least the paper's"]
    assert verdict == "met"
    # Sobol's second moments are four times better, not five.
    assert rows["Sobol: errors of moments at least 5 x below independent draws"][0] == "missed on 3 of 6"
    assert rows["the whole study within 75 minutes"] == ("met", "minutes 6.00 (bar 75.0)", "none")


def test_a_figure_that_diverged_misses_its_bar():
    broken = [Record("two_d", "cpu", "kl", "mog2", "ksd_imq_v", float("nan"), None, 500, 20, 0, 0.1)]
    (row,) = bars_table(Cells(broken)).rows
    assert row[1] == "missed on 1 of 1"
    assert "diverged" in row[3]


class Sources(HTMLParser):
    """Every address a page would load, and its tags."""

    def __init__(self):
        super().__init__()
        self.addresses, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]


def test_the_page_stands_alone(results, tmp_path):
    write_report(results, tmp_path)
    text = (tmp_path / "report.html").read_text()
    page = Sources()
    page.feed(text)
    assert page.addresses
    assert all(address.startswith(("data:image/", "#")) for address in page.addresses)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "@import" not in text
    assert "url(" not in text
    assert "width=device-width" in text
    # Every table scrolls in a box of its own, so that the page never does.
    assert text.count("<table") == text.count("class='scroll'")


def test_the_same_records_give_the_same_files(results, tmp_path):
    first = {p.name: p.read_bytes() for p in write_report(results, tmp_path / "a")}
    second = {p.name: p.read_bytes() for p in write_report(results, tmp_path / "b")}
    assert first == second
    assert {"two_d.md", "report.html", "two_d_draws.png", "two_d_speed.svg"} <= set(first)


def test_a_study_nobody_has_told_gets_plain_tables(tmp_path):
    records = [Record("novel", "cpu", "ours", "x|y", "fid", 3.25, 0.5, 10, 2, 0, 3.0)]
    write(tmp_path / "novel.jsonl", header("novel"), records)
    write_report(tmp_path, tmp_path / "docs")
    text = (tmp_path / "docs" / "novel.md").read_text()
    assert "| ours | 3.25 ± 0.50 (1.08x) |" in text


def test_a_study_cut_short_still_makes_a_report(results, tmp_path):
    head, records = read(results / "two_d.jsonl")
    write(results / "two_d.jsonl", head, records[:3])
    (results / "two_d_draws.npz").unlink()
    write_report(results, tmp_path)
    assert "Table 1" in (tmp_path / "two_d.md").read_text()


def test_a_folder_without_records_is_an_error_that_helps(tmp_path):
    with pytest.raises(ValueError, match="pushforward study"):
        write_report(tmp_path, tmp_path)
    with pytest.raises(ValueError, match="no folder"):
        read_results(tmp_path / "nowhere")


def test_text_from_records_cannot_become_markup():
    table = Table("<b>", ("a", "b"), (("<script>", "x|y"),))
    assert "<script>" not in table.as_html()
    assert re.search(r"x\\\|y", table.markdown())
    with pytest.raises(ValueError, match="cells"):
        Table("t", ("a", "b"), (("one",),))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.12345, "0.123"),
        (1234.5, "1,230"),
        (None, "-"),
        (float("nan"), "diverged"),
        (0.0, "0"),
        (-0.5, "-0.500"),
    ],
)
def test_numbers_are_as_long_as_a_reader_can_use(value, words):
    assert short(value) == words
    assert times(1.239) == "1.24x"
    assert times(18871.4) == "18,871x"


@pytest.mark.parametrize(
    ("rows", "panels"),
    [
        ([{"step": 1, "ksd_imq_v": 0.5}, {"step": 2, "ksd_imq_v": 0.1}], 3),
        ([{"step": 1, "efficiency": 0.5, "inside": 1.0}], 3),
        ([{"step": 1, "inside": 1.0}], 2),
        ([], 2),
    ],
)
def test_the_demos_picture_shows_what_the_training_told(rows, panels, tmp_path):
    side = np.linspace(-3.0, 3.0, 40)
    demo_figure(
        tmp_path / "demo.png",
        log_density=-0.5 * (side[:, None] ** 2 + side**2),
        window=((-3.0, 3.0), (-3.0, 3.0)),
        draws=np.random.default_rng(0).normal(size=(2000, 2)),
        history=rows,
        floor=0.1,
        floor_spread=0.01,
    )
    assert imread(tmp_path / "demo.png").shape[1] == {3: 2176, 2: 1488}[panels]
