"""What is said of a set of images: FID and KID with their floor, classes, copies of the training data."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import UInt8

from reproduce.data.images import Images
from reproduce.metrics.frechet import Reference
from reproduce.records import Record
from reproduce.studies.ebm.settings import Settings
from reproduce.studies.row import Row

TARGET = "images"
NEIGHBOURS, POOL = 500, 20_000
"""Images whose nearest neighbours are looked for, and training images to choose from by their classes."""


class Judge:
    """Holds images against the test set, in the feature space of one classifier."""

    def __init__(
        self, settings: Settings, data: Images, see: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    ):
        """Judge by `see(images)`: the features and the classes that a classifier sees in them."""
        self.settings, self.data, self.see = settings, data, see
        features, self.test_classes = see(data.test)
        self.reference = Reference(features)
        train = data.train.reshape(len(data.train), -1).astype(np.float32) / 255.0
        self._train, self._squares = train, np.sum(train * train, axis=1)
        self._floors: dict[int, tuple[float, float]] = {}
        self._pool = see(data.train[:POOL])
        self._test_distance = self._nearest(data.test)

    def record(self, method: str, metric: str, value: float | int, **more: Any) -> Record:
        """Return one figure."""
        row = Row(method, TARGET, self.settings.seed)
        return self.settings.record(row, metric, value, **{"repeats": None, **more})

    def floor(self, n: int) -> tuple[float, float]:
        """Return FID and KID of `n` training images, chosen by the seed: what exact draws would score."""
        if n not in self._floors:
            chosen = np.random.default_rng(self.settings.seed).permutation(len(self.data.train))[:n]
            features, _ = self.see(self.data.train[chosen])
            self._floors[n] = self.reference.fid(features), self.reference.kid(features)
        return self._floors[n]

    def images(self, method: str, images: UInt8[np.ndarray, "n height width"]) -> list[Record]:
        """Return all figures of a set of images."""
        n = len(images)
        features, classes = self.see(images)
        share = np.bincount(classes, minlength=self.data.classes) / n
        filled = share[share > 0]
        near = self._nearest(images)
        return [
            *self._distances(method, features, ""),
            self.record(method, "fid_of_shares", self._of_shares(share, n), n=n, floor=self.floor(n)[0]),
            *(self.record(method, f"class_share_{c}", float(s), n=n) for c, s in enumerate(share)),
            self.record(method, "least_class_share", float(share.min()), n=n),
            self.record(method, "class_entropy", float(-(filled * np.log(filled)).sum()), n=n),
            self.record(method, "neighbour_distance", near, n=min(n, NEIGHBOURS), floor=self._test_distance),
        ]

    def _of_shares(self, share: np.ndarray, n: int) -> float:
        """Return the FID of training images of these shares: above the floor it is what wrong shares cost."""
        rng, (features, classes) = np.random.default_rng(self.settings.seed), self._pool
        chosen = []
        for c, count in enumerate(np.round(n * share).astype(int)):
            members = np.flatnonzero(classes == c)
            if count and len(members):
                chosen.append(rng.choice(members, count, replace=count > len(members)))
        rows = np.concatenate(chosen) if chosen else np.zeros(0, int)
        return self.reference.fid(features[rows]) if len(rows) > 1 else float("nan")

    def means(
        self, method: str, sets: list[UInt8[np.ndarray, "n height width"]], suffix: str
    ) -> list[Record]:
        """Return FID and KID alone, as means over sets of images, under names with a suffix."""
        each = [self._distances(method, self.see(images)[0], suffix) for images in sets]
        found = []
        for same in zip(*each, strict=True):
            values = [record.value for record in same]
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
            changes = {"value": float(np.mean(values)), "spread": spread, "repeats": len(values)}
            found.append(dataclasses.replace(same[0], **changes))
        return found

    def _distances(self, method: str, features: np.ndarray, suffix: str) -> list[Record]:
        n, (floor_fid, floor_kid) = len(features), self.floor(len(features))
        return [
            self.record(method, f"fid{suffix}", self.reference.fid(features), n=n, floor=floor_fid),
            self.record(method, f"kid{suffix}", self.reference.kid(features), n=n, floor=floor_kid),
        ]

    def accuracy(self) -> Record:
        """Return the classifier's share of right answers on the test set."""
        right = float(np.mean(self.test_classes == self.data.test_labels))
        return self.record("classifier", "accuracy", right, n=len(self.data.test))

    def _nearest(self, images: np.ndarray) -> float:
        """Return the median distance of images to the nearest training image."""
        x = images[:NEIGHBOURS].reshape(-1, self._train.shape[1]).astype(np.float32) / 255.0
        apart = np.sum(x * x, axis=1)[:, None] + self._squares - 2.0 * x @ self._train.T
        return float(np.median(np.sqrt(np.maximum(apart.min(axis=1), 0.0))))
