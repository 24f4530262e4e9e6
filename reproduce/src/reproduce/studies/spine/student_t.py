"""Student's t in one dimension: the quantiles, out to the tails.

A Lipschitz map of a normal has no polynomial tail, so quantiles are compared between 0.5 % and 99.5 % only.
"""

from pathlib import Path

import jax
import numpy as np
from scipy import stats

from pushforward import methods
from reproduce.records import Record, of_recipe
from reproduce.studies.fitting import fit_to_the_end
from reproduce.studies.row import Row
from reproduce.studies.settings import FitSettings
from reproduce.studies.store import Figures
from reproduce.targets import student_t

LEVELS = np.array([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995])
"""The median is zero, where a relative error means nothing; it is compared in units of the quartile."""

NUM_DRAWS = 1_000_000

QUANTILES = "spine_draws.npz"
FINE_LEVELS = np.concatenate([[0.001, 0.002, 0.005], np.linspace(0.01, 0.99, 99), [0.995, 0.998, 0.999]])


def student_t_row(row: Row, settings: FitSettings, folder: Path) -> list[Record]:
    """Fit one method to one t and record its quantile errors; the quantiles are kept for the figure."""
    df = float(row.target.rsplit("_", 1)[1])
    how = settings.asked(methods.METHODS[row.method])
    done = fit_to_the_end(jax.random.key(row.seed), student_t(df), method=how)
    draws = np.sort(np.asarray(done.sampler.sample(jax.random.key(1000), NUM_DRAWS))[:, 0])
    truth = stats.t.ppf(LEVELS, df)
    relative = np.abs(np.quantile(draws, LEVELS) / truth - 1.0)
    median = abs(float(np.median(draws))) / float(stats.t.ppf(0.75, df))
    fine = np.quantile(draws, FINE_LEVELS).astype(np.float32)
    Figures(folder / QUANTILES).add({f"quantiles/{row.method}/{row.target}": fine, "levels": FINE_LEVELS})

    errors = {
        "quantile_error": relative.max(),
        "quantile_error_inner": relative[np.abs(LEVELS - 0.5) <= 0.45 + 1e-9].max(),
        "median_error": median,
    }
    seconds = settings.record(row, "train_seconds", done.seconds)
    return of_recipe(how.recipe, [*settings.figures(row, errors, n=NUM_DRAWS), seconds])
