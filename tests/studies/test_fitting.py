"""An interrupt ends a study: what was half trained is recorded nowhere."""

import jax
import pytest

import pushforward as pf
from pushforward.objectives.base import Objective, Wants
from pushforward.targets import gaussian
from pushforward.training import LoopResult
from reproduce.studies import theory
from reproduce.studies.fitting import annealed, at_its_end, fit_to_the_end

pytestmark = pytest.mark.quick_compilation

SHORT = {"frame": "identity", "latent": "normal", "forward_weight": 0.0, "width": 4, "depth": 1,
         "score_width": 4, "score_depth": 1, "num_steps": 2}  # fmt: skip
"""Changes of a recipe: a training that begins at once and takes no time."""


def interrupt(row):
    """A callback in the middle of which Ctrl-C is pressed."""
    raise KeyboardInterrupt


def test_a_fit_that_was_interrupted_is_no_row():
    key, how = jax.random.key(0), pf.methods.KL(**SHORT)
    assert pf.fit(key, gaussian(), method=how, progress=False, callback=interrupt).outcome is (
        pf.Outcome.INTERRUPTED
    )
    with pytest.raises(KeyboardInterrupt):
        fit_to_the_end(key, gaussian(), method=how, callback=interrupt)


class Interrupted(Objective):
    """An objective in the middle of which Ctrl-C is pressed."""

    wants = Wants(fitted="nothing")

    def surrogate(self, key, network, z, view):
        raise KeyboardInterrupt


def test_a_study_that_is_interrupted_records_nothing(tmp_path):
    changes = {**SHORT, "objective": Interrupted()}
    settings = theory.PRESETS["smoke"].replace(
        methods=("kl",), targets=("student_t_5",), recipe_changes=changes
    )
    with pytest.raises(KeyboardInterrupt):
        theory.run(settings, tmp_path)
    lines = (tmp_path / "theory.jsonl").read_text().splitlines()
    assert len(lines) == 1  # the header


def test_other_ends_are_handed_on():
    ended = LoopResult(None, [], pf.Outcome.OUT_OF_TIME)
    assert at_its_end(ended) is ended


def test_what_is_found_before_the_training_is_kept_for_the_next_method():
    how = pf.methods.Annealed(**{"annealing.num_particles": 512, "search.looks": 2**10})
    build = pf.targets.get
    first = annealed(build, "gaussian", 0, how)
    assert annealed(build, "gaussian", 0, how) is first
    assert [phase["phase"] for phase in first.phases] == ["search", "path", "residual"]
    assert first.state is not None
    assert first.state.network is None
