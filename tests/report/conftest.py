import numpy as np
import pytest
from report_fakes import SIX, header, plane_records

from reproduce.records import write


@pytest.fixture
def results(tmp_path):
    """A folder of results without a study having been run."""
    folder = tmp_path / "results"
    write(folder / "two_d.jsonl", header(), plane_records())
    rng = np.random.default_rng(0)
    arrays = {}
    for target in SIX:
        arrays[f"density/{target}"] = rng.integers(0, 255, (40, 40)).astype(np.uint8)
        arrays[f"window/{target}"] = np.array([-5, 5, -5, 5], np.float32)
        for method in ("default", "kl", "svgd"):
            arrays[f"draws/{method}/{target}"] = rng.normal(size=(200, 2)).astype(np.float32)
            seconds = np.linspace(5, 40, 10)
            falling = 0.1 + np.exp(-seconds / 5)
            arrays[f"curve/{method}/{target}"] = np.stack([seconds, falling, falling / 9, falling], axis=1)
    np.savez_compressed(folder / "two_d_draws.npz", **arrays)
    return folder
