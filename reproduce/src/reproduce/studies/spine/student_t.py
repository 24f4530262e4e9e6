"""Student's t in one dimension: the quantiles, out to the tails.

A Lipschitz map of a normal has no polynomial tail, so quantiles are compared between 0.5 % and 99.5 % only.
"""

import io
from pathlib import Path

import jax
import numpy as np
from scipy import stats

from pushforward.files import write_atomically
from pushforward.targets import student_t
from pushforward.training import preset
from reproduce.records import Record
from reproduce.studies.fitting import fit_to_the_end
from reproduce.studies.row import Row

LEVELS = np.array([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995])
"""The median is zero, where a relative error means nothing; it is compared in units of the quartile."""

NUM_DRAWS = 1_000_000

QUANTILES = "spine_draws.npz"
FINE_LEVELS = np.concatenate([[0.001, 0.002, 0.005], np.linspace(0.01, 0.99, 99), [0.995, 0.998, 0.999]])


def student_t_row(row: Row, name: str, max_steps: int | None, folder: Path) -> list[Record]:
    """Fit one method to one t and record its quantile errors; the sampler is kept for the figure."""
    df = float(row.target.rsplit("_", 1)[1])
    settings = preset(row.method)
    if max_steps is not None:
        settings = settings.replace(num_steps=min(max_steps, settings.num_steps))
    done = fit_to_the_end(jax.random.key(row.seed), student_t(df), settings=settings)
    draws = np.sort(np.asarray(done.sampler.sample(jax.random.key(1000), NUM_DRAWS))[:, 0])
    truth = stats.t.ppf(LEVELS, df)
    relative = np.abs(np.quantile(draws, LEVELS) / truth - 1.0)
    median = abs(float(np.median(draws))) / float(stats.t.ppf(0.75, df))
    _keep(folder, row, draws)

    def record(metric: str, value: float, n: int | None = NUM_DRAWS) -> Record:
        return Record(
            "spine", name, row.method, row.target, metric, float(value), n=n, repeats=1, seed=row.seed
        )

    return [
        record("quantile_error", relative.max()),
        record("quantile_error_inner", relative[np.abs(LEVELS - 0.5) <= 0.45 + 1e-9].max()),
        record("median_error", median),
        record("train_seconds", done.seconds, n=None),
    ]


def _keep(folder: Path, row: Row, draws: np.ndarray) -> None:
    """Keep quantiles at fine levels beside the records: all that the figure needs."""
    path = folder / QUANTILES
    held: dict[str, np.ndarray] = {}
    if path.exists():
        with np.load(path) as old:
            held = {name: old[name] for name in old.files}
    held[f"quantiles/{row.method}/{row.target}"] = np.quantile(draws, FINE_LEVELS).astype(np.float32)
    held["levels"] = FINE_LEVELS
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **held)  # pyright: ignore[reportArgumentType]
    write_atomically(path, buffer.getvalue())
