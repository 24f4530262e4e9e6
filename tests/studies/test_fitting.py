"""An interrupt ends a study: what was half trained is recorded nowhere."""

import jax
import pytest

from pushforward.targets import gaussian
from pushforward.training import LoopResult, Outcome, phases, preset
from reproduce.studies import spine
from reproduce.studies.fitting import at_its_end, fit_to_the_end


@pytest.fixture
def interrupted(monkeypatch):
    """Training that Ctrl-C ends at once, after a lesson that takes no time."""

    def run(key, algorithm, state, **how):
        return LoopResult(state, [], Outcome.INTERRUPTED)

    monkeypatch.setattr(phases, "run", run)


SHORT = preset("kl", frame="identity", num_steps=2)


def test_a_fit_that_was_interrupted_is_no_row(interrupted):
    with pytest.raises(KeyboardInterrupt):
        fit_to_the_end(jax.random.key(0), gaussian(), settings=SHORT)


def test_a_study_that_is_interrupted_records_nothing(interrupted, monkeypatch, tmp_path):
    monkeypatch.setattr("reproduce.studies.spine.student_t.preset", lambda method: SHORT)
    settings = spine.PRESETS["smoke"].replace(methods=("kl",), targets=("student_t_5",))
    with pytest.raises(KeyboardInterrupt):
        spine.run(settings, tmp_path)
    lines = (tmp_path / "spine.jsonl").read_text().splitlines()
    assert len(lines) == 1  # the header


def test_other_ends_are_handed_on():
    ended = LoopResult(None, [], Outcome.OUT_OF_TIME)
    assert at_its_end(ended) is ended
