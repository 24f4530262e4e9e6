from typer.testing import CliRunner

from pushforward.cli import app


def test_the_smoke_results_become_a_report(smoke_folder, tmp_path):
    result = CliRunner().invoke(app, ["report", str(smoke_folder), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "two_d.md").read_text()
    for words in ("Bars, met and missed", "Table 1", "Sliced W2", "Table 2", "Better than independent"):
        assert words in text
    assert "pushforward study two-d --preset smoke" in text
    assert (tmp_path / "report.html").stat().st_size > 50_000
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {
        *("two_d_draws.png", "two_d_ksd_time.svg", "two_d_w2_time.svg", "two_d_speed.svg")
    }


def test_an_empty_folder_is_a_message_not_a_traceback(tmp_path):
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert "no records" in result.output + result.stderr


def test_the_plan_of_a_preset_is_printed_without_running_it(tmp_path):
    result = CliRunner().invoke(
        app, ["study", "two-d", "--preset", "paper", "--plan", "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "322,802 parameters" in result.output
    assert not list(tmp_path.iterdir())


def test_unknown_names_are_refused_with_the_nearest():
    result = CliRunner().invoke(app, ["study", "two-d", "--preset", "cpuu"])
    assert result.exit_code == 2
    assert "cpu" in result.stderr
