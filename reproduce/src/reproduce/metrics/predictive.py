"""How well posterior draws predict what was held out: accuracy, log probability, calibration."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

CHUNK = 8192


class Predictive(NamedTuple):
    """Figures of a set of posterior draws on held-out rows."""

    accuracy: float  # the share of rows whose label has more than half of the predictive probability
    log_predictive: float  # the mean log predictive probability of the labels, in nats a row
    calibration: Float[np.ndarray, "bins 3"]
    """For each bin of predicted probability of `+1`: its mean, the share of `+1`, the rows in it."""
    calibration_error: float  # the mean distance of the two, rows counting alike


def predictive(
    weights: Float[np.ndarray, "draws weights"],
    features: Float[np.ndarray, "rows features"],
    labels: Int[np.ndarray, " rows"],
    *,
    num_bins: int = 20,
) -> Predictive:
    """Judge draws of a logistic regression's weights."""
    weights = np.asarray(weights, np.float32)
    columns = features.shape[1]
    if weights.ndim != 2 or weights.shape[1] not in (columns, columns + 1):
        raise ValueError(
            f"`weights` must have shape (draws, {columns}), or (draws, {columns + 1}) with a bias; "
            f"got {weights.shape}. Leave out the coordinate of the prior's precision."
        )
    if not np.isfinite(weights).all():
        nowhere = np.full((num_bins, 3), np.nan)
        return Predictive(np.nan, np.nan, nowhere, np.nan)
    positive = np.empty(len(labels))
    for start in range(0, len(labels), CHUNK):
        rows = slice(start, start + CHUNK)
        logits = features[rows] @ weights[:, :columns].T
        if weights.shape[1] > columns:
            logits = logits + weights[:, columns]
        # tanh does not overflow where exp would.
        positive[rows] = np.mean(0.5 + 0.5 * np.tanh(0.5 * logits.astype(np.float64)), axis=1)
    right = np.where(labels > 0, positive, 1.0 - positive)
    curve = _calibration(positive, labels > 0, num_bins)
    filled = curve[curve[:, 2] > 0]
    error = float(np.sum(filled[:, 2] * np.abs(filled[:, 0] - filled[:, 1])) / len(labels))
    tiny = np.finfo(float).tiny
    return Predictive(float(np.mean(right > 0.5)), float(np.mean(np.log(right + tiny))), curve, error)


def _calibration(
    probability: Float[np.ndarray, " rows"], happened: np.ndarray, num_bins: int
) -> Float[np.ndarray, "bins 3"]:
    place = np.minimum((probability * num_bins).astype(int), num_bins - 1)
    counts = np.bincount(place, minlength=num_bins)
    with np.errstate(invalid="ignore"):
        means = np.bincount(place, probability, num_bins) / counts
        shares = np.bincount(place, happened.astype(float), num_bins) / counts
    return np.stack([means, shares, counts.astype(float)], axis=1)
