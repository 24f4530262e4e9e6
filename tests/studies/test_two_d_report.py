from typer.testing import CliRunner

from pushforward.cli import app


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
