"""One split's judge: what is held out, and the means and spreads of every coordinate against NUTS."""

import time
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from reproduce.metrics.predictive import Predictive, predictive
from reproduce.records import Record
from reproduce.studies.covertype.case import Case, Store
from reproduce.studies.covertype.settings import Settings
from reproduce.studies.row import Draw, Row
from reproduce.timing import take_turns

MEAN_BAR, SD_BAR = 0.1, 0.1
REPEATS = 5  # sets of draws for the predictive figures, where a method can give fresh ones


class Judge:
    """Scores draws on one split; NUTS's moments and figures come from the store, once it has run."""

    def __init__(self, case: Case, store: Store, settings: Settings):
        """Judge draws of one split."""
        self.case, self.store, self.settings = case, store, settings

    def predict(self, draws: Float[np.ndarray, "n dim"]) -> Predictive:
        """Return how well draws predict the held-out part."""
        held_out = self.case.split
        return predictive(draws[:, :-1], held_out.test_features, held_out.test_labels)

    def predictive_records(self, row: Row, sets: list[Float[np.ndarray, "n dim"]]) -> list[Record]:
        """Return accuracy, log predictive and calibration error, over sets of draws."""
        found = [self.predict(draws) for draws in sets]
        self.store.add({f"calibration/{row.method}/{row.seed}": found[0].calibration.astype(np.float32)})
        records = []
        for metric in ("accuracy", "log_predictive", "calibration_error"):
            values = np.array([getattr(each, metric) for each in found])
            reference = self.store.array(f"reference/{metric}/{row.target}/{row.seed}")
            floor = None if reference is None or row.method == "nuts" else float(reference)
            if row.method == "nuts":
                self.store.add({f"reference/{metric}/{row.target}/{row.seed}": np.array(values.mean())})
            records.append(self.settings.record(row, metric, values, n=len(sets[0]), floor=floor))
        return records

    def moment_records(self, row: Row, draws: Float[np.ndarray, "n dim"]) -> list[Record]:
        """Return how far means and standard deviations are from NUTS's, over all coordinates.

        `mean_error` is the 95th percentile of `|mean - mean'| / sd'`; `mean_share` and `sd_share` are the
        shares of coordinates within a tenth; `sd_ratio` is the median of `sd / sd'`, its spread half the
        distance between the 2.5 and 97.5 percentiles.
        """
        x = np.asarray(draws, np.float64)
        moments = np.stack([x.mean(axis=0), x.std(axis=0, ddof=1)])
        self.store.add({f"moments/{row.method}/{row.target}/{row.seed}": moments.astype(np.float32)})
        reference = self.store.array(f"moments/nuts/{row.target}/{row.seed}")
        if reference is None or row.method == "nuts":
            return []
        errors = np.abs(moments[0] - reference[0]) / reference[1]
        ratios = moments[1] / reference[1]
        if not (np.isfinite(errors).all() and np.isfinite(ratios).all()):
            names = ("mean_error", "mean_share", "sd_ratio", "sd_share", "sd_low", "sd_high")
            return self.settings.figures(row, dict.fromkeys(names, np.nan), n=len(x))
        low, middle, high = np.quantile(ratios, [0.025, 0.5, 0.975])
        # Of the coordinates' errors the value that 95 % do not exceed: no interpolation between two.
        ranked = float(np.quantile(errors, 0.95, method="inverted_cdf"))
        record = partial(self.settings.record, row, n=len(x))
        return [
            record("mean_error", ranked, spread=float(errors.max())),
            record("mean_share", np.mean(errors <= MEAN_BAR)),
            record("sd_ratio", middle, spread=float(high - low) / 2),
            record("sd_share", np.mean(np.abs(ratios - 1) <= SD_BAR)),
            record("sd_low", ratios.min()),
            record("sd_high", ratios.max()),
        ]

    def fresh_draws(self, row: Row, draw: Draw) -> list[Record]:
        """Judge a method that can make as many draws as are asked for."""
        s = self.settings
        keys = jax.random.split(row.key("predictive"), REPEATS)
        sets = [np.asarray(draw(key, s.predictive_draws)) for key in keys]
        many = np.asarray(draw(row.key("moments"), s.moment_draws))
        return [*self.predictive_records(row, sets), *self.moment_records(row, many)]

    def fixed_draws(self, row: Row, draws: Float[np.ndarray, "n dim"]) -> list[Record]:
        """Judge a method that has so many draws and no more."""
        return [*self.predictive_records(row, [draws]), *self.moment_records(row, draws)]

    def speed_records(self, row: Row, draw: Draw, train_seconds: float) -> list[Record]:
        """Time 100 draws, and many; hold the seconds of an effective draw against NUTS's."""
        s = self.settings
        hundred = _seconds(draw, row.key("speed"), s.predictive_draws, s.speed_repeats)
        many = _seconds(draw, row.key("speed"), s.moment_draws, max(2, s.speed_repeats // 5))
        records = [
            s.timing(row, "seconds_per_100_draws", hundred, s.predictive_draws),
            s.timing(row, "seconds_per_many_draws", many, s.moment_draws),
        ]
        theirs = self.store.array(f"reference/seconds_per_effective_draw/{row.target}/{row.seed}")
        if theirs is None:
            return records
        # Independent draws: every one is effective. A hundred at a time is the dearest way to have them.
        ours = float(np.median(hundred)) / s.predictive_draws
        gain = float(theirs) - ours
        even = train_seconds / gain if gain > 0 else float("nan")
        ratios = {
            "speed_ratio": float(theirs) / ours,
            "speed_ratio_many": float(theirs) / (float(np.median(many)) / s.moment_draws),
        }
        return [*records, *s.figures(row, {**ratios, "break_even": even})]


def _seconds(draw: Draw, key: Key[Array, ""], n: int, repeats: int) -> np.ndarray:
    """Return the processor's seconds: what else runs on the machine must favour nobody."""
    return np.array(take_turns({"draw": lambda: draw(key, n)}, repeats, time.process_time)["draw"])
