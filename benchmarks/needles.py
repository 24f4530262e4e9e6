"""Narrow modes beside a wide one: which are found, and whether what is missed is told.

    python benchmarks/needles.py [--count 240] [--out results/needles.jsonl]

Random mixtures of `N(0, I)` and a normal of random share, width and place, each fitted by one call without
settings and checked, in a process of its own with the compilation cache of the machine. The settings are
drawn before anything is run. A row is `found` if the draws have the share within a quarter of it. A miss is
`flagged` if the outcome or the verdict speaks against the sampler. It is `inside` where the mode is wider
than what would have been seen with 95 % probability, for a mode of this share. Rows that are in the file are
not run again.
"""

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import pushforward as pf
from pushforward.recipe.residual import num_looks, resolution
from pushforward.recipe.table import Recipe

DIMS, SEED = (2, 3, 5, 10, 20), 2026


class Needle(NamedTuple):
    """A mode: its share of the mass, its width, and where it is."""

    dim: int
    share: float
    width: float
    place: list[float]


def needles(count: int) -> list[Needle]:
    """Return random modes, near the middle and far from it, in turn over the dimensions."""
    rng, found = np.random.default_rng(SEED), []
    for i in range(count):
        dim = DIMS[i % len(DIMS)]
        share, width = rng.uniform(0.02, 0.5), float(np.exp(rng.uniform(np.log(1e-3), np.log(0.2))))
        direction = rng.normal(size=dim)
        # Half among the draws of the wide mode, half up to six deviations off.
        far = np.sqrt(dim) if i // len(DIMS) % 2 == 0 else rng.uniform(2.0, 6.0)
        place = far * rng.uniform(0.2, 1.0) * direction / np.linalg.norm(direction)
        found.append(Needle(dim, float(share), width, [float(v) for v in place]))
    return found


def one(number: int, needle: Needle) -> dict[str, Any]:
    """Fit, draw and check; return what came of it."""
    dim, share, width, place = needle
    covariances = np.stack([np.eye(dim), width**2 * np.eye(dim)])
    target = pf.targets.Mixture([1.0 - share, share], np.stack([np.zeros(dim), place]), covariances)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = pf.fit(jax.random.key(number), target, progress=False, throw=False)
        draws = np.asarray(fit.sampler.sample(jax.random.key(number + 1000), 20_000))
        report = pf.check(jax.random.key(number + 2000), fit.sampler, target)
    found = float(np.mean(np.linalg.norm(draws - place, axis=1) < width * (np.sqrt(dim) + 4.0)))
    # Of the wide mode's own draws a few lie there, too.
    wide = np.random.default_rng(number).normal(size=(20_000, dim))
    found -= (1.0 - share) * float(
        np.mean(np.linalg.norm(wide - place, axis=1) < width * (np.sqrt(dim) + 4.0))
    )
    recipe = Recipe()
    seen = resolution(dim, num_looks(target, recipe.search), share, recipe.residual)
    return {
        **needle._asdict(), "number": number, "found_share": found, "outcome": fit.outcome.name,
        "verdict": report.verdict, "resolution": seen, "inside": width > seen,
        "found": abs(found - share) < 0.25 * share,
        "flagged": not fit.outcome.good or report.verdict != "trust",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=240)
    parser.add_argument("--out", type=Path, default=Path("results/needles.jsonl"))
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    all_of_them = needles(options.count)
    if options.run is not None:
        print(json.dumps(one(options.run, all_of_them[options.run])))
        return
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    rows = {row["number"]: row for row in map(json.loads, lines) if "number" in row}
    for number in range(options.count):
        if number in rows:
            continue
        words = [sys.executable, __file__, "--count", str(options.count), "--run", str(number)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        rows[number] = json.loads(done.stdout.splitlines()[-1])
        with options.out.open("a") as file:
            file.write(json.dumps(rows[number]) + "\n")
        print(rows[number], flush=True)
    every = list(rows.values())
    inside = [row for row in every if row["inside"]]
    silent = [row for row in every if not row["found"] and not row["flagged"]]
    print(
        f"{len(every)} modes, {sum(row['found'] for row in every)} found; inside the stated resolution "
        f"{sum(row['found'] for row in inside)} of {len(inside)} found; "
        f"missed in silence {len(silent)}, of which {sum(row['inside'] for row in silent)} inside"
    )


if __name__ == "__main__":
    main()
