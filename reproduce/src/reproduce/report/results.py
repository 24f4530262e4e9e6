"""A folder of results, read: every study's header, its records, and the arrays saved beside them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pushforward.arrays import read_npz
from reproduce.records import Header, Record, read


@dataclass(frozen=True)
class Study:
    """One study's results."""

    header: Header
    records: list[Record]
    arrays: dict[str, np.ndarray]
    """What figures are drawn from; empty where the study saved none."""

    @property
    def name(self) -> str:
        """The study's name."""
        return self.header.study


def read_results(folder: str | Path) -> list[Study]:
    """Read all `*.jsonl` of a folder, or say that there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}. Give the one a study wrote to, such as `results`.")
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise ValueError(
            f"there are no records (*.jsonl) in {folder}. "
            f"Make some first: `pushforward study two-d --preset smoke --out {folder}`."
        )
    return [_study(path) for path in paths]


def _study(path: Path) -> Study:
    header, records = read(path)
    beside, arrays = path.with_name(f"{path.stem}_draws.npz"), {}
    if beside.exists():
        arrays = read_npz(beside)
    return Study(header, records, arrays)
