"""Densities that a user should never have written, and what the library says of each within 30 seconds.

    python benchmarks/hostile.py [--out results/hostile.jsonl] [--only box_3 ...] [--again]

Each runs in a process of its own: `check_target`, `fit(budget="30s")` and `check`. A row has passed if the
draws are right, or if a refusal, a warning, an outcome or a verdict says what is wrong within 30 seconds.
Draws are right if the distribution functions of each coordinate, of random projections and of the log density
are within 0.03 of those of exact draws. Rows that are in the file are not run again.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

inf, N = jnp.inf, 20_000
CASES: dict[str, tuple[Any, int, Any]] = {}
"""Name: the function, its dimension, and a sampler of exact draws `(rng, n)`; `None` if it is no density."""


def case(dim: int, exact: Any = None, name: str | None = None) -> Any:
    def keep(fn: Any) -> Any:
        CASES[name or fn.__name__] = (fn, dim, exact)
        return fn

    return keep


def kept(rng: np.random.Generator, n: int, draw: Any, keep: Any) -> np.ndarray:
    """Draw by rejection."""
    found = np.zeros((0, 1))
    while len(found) < n:
        x = draw(rng, 4 * n)
        x = x[keep(x)]
        found = x if len(found) == 0 else np.concatenate([found, x])
    return found[:n]


def normal(dim: int, sd: Any = 1.0, mean: Any = 0.0) -> Any:
    return lambda rng, n: mean + sd * rng.normal(size=(n, dim))


def cut(dim: int, keep: Any, sd: Any = 1.0) -> Any:
    return lambda rng, n: kept(rng, n, normal(dim, sd), keep)


def on_line(log_density: Any, low: float, high: float, dim: int) -> Any:
    """Draw independent coordinates from a density on a line, by its distribution function."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        x = np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), 400_001))
        height = log_density(x)
        mass = np.exp(height - np.nanmax(height)) * np.gradient(x)
        total = np.cumsum(np.nan_to_num(mass))
        return np.interp(rng.random((n, dim)), total / total[-1], x)

    return draw


def half_sum(x: Any) -> Any:
    return -0.5 * jnp.sum(x**2)


# Bounds, half-spaces, simplices, holes, gaps.
for d in (1, 3, 8):
    in_box = on_line(lambda t: np.where(abs(t) < 1, -(t**2), -np.inf), -1, 1, d)
    case(d, in_box, f"box_{d}")(lambda x: jnp.where((jnp.abs(x) < 1).all(), -jnp.sum(x**2), -inf))
case(2, lambda r, n: r.uniform(-100, 100, (n, 2)), "uniform_wide")(
    lambda x: jnp.where((jnp.abs(x) < 100).all(), 0.0 * x.sum(), -inf))  # fmt: skip
case(2, cut(2, lambda x: (x > 0.5).all(1)), "quadrant")(
    lambda x: jnp.where((x > 0.5).all(), half_sum(x), -inf)
)
case(2, lambda r, n: np.column_stack([r.gamma(2, 1, n), r.normal(size=n) * 0.5**0.5]), "half_space_nan")(
    lambda x: jnp.log(x[0]) - x[0] - x[1] ** 2)  # fmt: skip
case(2, lambda r, n: np.column_stack([r.gamma(4, 1, n), r.normal(size=n) * 0.5**0.5]), "gamma_4")(
    lambda x: 3 * jnp.log(x[0]) - x[0] - x[1] ** 2)  # fmt: skip
case(3, lambda r, n: r.exponential(size=(n, 3)), "exponential")(
    lambda x: jnp.where((x > 0).all(), -jnp.sum(x), -inf)
)
case(5, lambda r, n: r.beta(2, 3, (n, 5)), "beta")(lambda x: jnp.sum(jnp.log(x) + 2 * jnp.log1p(-x)))
case(3, lambda r, n: r.beta(0.5, 0.5, (n, 3)), "arcsine")(
    lambda x: -0.5 * jnp.sum(jnp.log(x) + jnp.log1p(-x))
)
case(2, lambda r, n: r.uniform(1000, 1001, (n, 2)), "uniform_far")(
    lambda x: jnp.where(((x > 1000) & (x < 1001)).all(), 0.0 * x.sum(), -inf))  # fmt: skip
case(3, lambda r, n: r.dirichlet(2 * np.ones(4), n)[:, :3], "simplex")(
    lambda x: jnp.sum(jnp.log(x)) + jnp.log1p(-jnp.sum(x)))  # fmt: skip
case(3, lambda r, n: np.sort(r.normal(size=(n, 3)), 1), "ordered")(
    lambda x: jnp.where((jnp.diff(x) > 0).all(), half_sum(x), -inf))  # fmt: skip
case(2, cut(2, lambda x: x.sum(1) < 0.5), "slanted")(lambda x: jnp.where(x.sum() < 0.5, half_sum(x), -inf))
case(3, cut(3, lambda x: (x**2).sum(1) < 1), "ball")(
    lambda x: jnp.where(jnp.sum(x**2) < 1, half_sum(x), -inf)
)
case(2, cut(2, lambda x: (x**2).sum(1) > 1), "hole")(
    lambda x: jnp.where(jnp.sum(x**2) > 1, half_sum(x), -inf)
)
case(2, cut(2, lambda x: abs(x[:, 0]) > 1, 2.0), "gap")(
    lambda x: jnp.where(jnp.abs(x[0]) > 1, half_sum(x / 2), -inf))  # fmt: skip
case(2, None, "periodic")(lambda x: 2 * jnp.cos(x[0]) - x[1] ** 2)
case(2, None, "periodic_odd")(lambda x: jnp.sin(x[0] * 1.7) - x[1] ** 2)

# Cusps, steps, tails.
case(3, lambda r, n: r.laplace(size=(n, 3)), "laplace")(lambda x: -jnp.sum(jnp.abs(x)))
case(2, on_line(lambda t: -np.sqrt(np.abs(t)), -3e3, 3e3, 2), "root_cusp")(
    lambda x: -jnp.sum(jnp.sqrt(jnp.abs(x) + 1e-12))
)
case(2, on_line(lambda t: -(t**16), -2, 2, 2), "power_16")(lambda x: -jnp.sum(x**16))
case(5, on_line(lambda t: -(t**8), -3, 3, 5), "power_8")(lambda x: -jnp.sum(x**8))


def chain(scales: list[float], powers: list[int]) -> Any:
    """Draw `x_0` normal, then each coordinate around a power of the one before."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        x = [rng.normal(size=n) * scales[0]]
        for scale, power in zip(scales[1:], powers, strict=True):
            x.append(x[-1] ** power + scale * rng.normal(size=n))
        return np.stack(x, 1)

    return draw


def chained(scales: list[float], powers: list[int]) -> Any:
    def fn(x: Any) -> Any:
        total = -0.5 * (x[0] / scales[0]) ** 2
        for i, (scale, power) in enumerate(zip(scales[1:], powers, strict=True)):
            total = total - 0.5 * ((x[i + 1] - x[i] ** power) / scale) ** 2
        return total

    return fn


for words, scales, powers in (
    ("chain_x4", [1.0, 0.3, 0.3], [2, 2]), ("chain_x8", [1.0, 0.3, 0.3, 0.3], [2, 2, 2]),
    ("chain_x16", [1.0, 0.3, 0.3, 0.3, 0.3], [2, 2, 2, 2]), ("power_chain_16", [1.0, 0.2], [16]),
):  # fmt: skip
    case(len(scales), chain(scales, powers), words)(chained(scales, powers))
for d in (2, 5, 20):
    case(d, lambda r, n, d=d: r.standard_cauchy((n, d)), f"cauchy_{d}")(lambda x: -jnp.sum(jnp.log1p(x**2)))
    case(d, lambda r, n, d=d: r.normal(size=(n, d)) / np.sqrt(r.chisquare(1, (n, 1))), f"cauchy_joint_{d}")(
        lambda x, d=d: -0.5 * (d + 1) * jnp.log1p(jnp.sum(x**2)))  # fmt: skip
case(2, lambda r, n: r.standard_t(0.2, (n, 2)), "nearly_improper")(
    lambda x: -0.6 * jnp.sum(jnp.log1p(5 * x**2))
)
case(2, None, "improper_log")(lambda x: -0.9 * jnp.log1p(jnp.sum(x**2)))
case(2, None, "improper_flat")(lambda x: -0.5 * x[0] ** 2 - jnp.logaddexp(0.0, -x[1]))
case(2, None, "wrong_sign")(lambda x: 0.5 * jnp.sum(x**2))
case(2, None, "unused")(lambda x: -0.5 * x[0] ** 2)
case(1, None, "infinite_spike")(lambda x: -1.5 * jnp.log(jnp.abs(x[0])) - x[0] ** 2)


def steps(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.normal(size=(8 * n, 2))
    return x[rng.random(8 * n) < np.exp(-2.0 * (np.floor(x).sum(1) % 2))][:n]


case(2, steps, "discontinuous")(lambda x: half_sum(x) - 2.0 * (jnp.floor(x).sum() % 2))
case(2, normal(2), "folded")(lambda x: half_sum(jnp.abs(x)))


def two(rng: np.random.Generator, n: int) -> np.ndarray:
    wide = rng.random((n, 1)) < 0.5
    return np.where(wide, rng.normal(size=(n, 2)), 8 + 0.05 * rng.normal(size=(n, 2)))


def bananas(rng: np.random.Generator, n: int) -> np.ndarray:
    z = rng.normal(size=(n, 40))
    z[:, 1::2] += z[:, ::2] ** 2
    return z


case(2, two, "needle")(
    lambda x: logsumexp(jnp.stack([half_sum(x), half_sum((x - 8) / 0.05) - 2 * jnp.log(0.05)]))
)
case(40, bananas, "bananas_40")(lambda x: half_sum(x[::2]) + half_sum(x[1::2] - x[::2] ** 2))

# Units, offsets, rounding.
for power in (-30, -10, -4, 4, 10, 30):
    case(2, normal(2, 10.0**power), f"scale_1e{power}")(lambda x, s=10.0**power: half_sum(x / s))
case(3, normal(3, np.array([1e-6, 1.0, 1e6])), "scales_apart")(
    lambda x: half_sum(x / jnp.array([1e-6, 1.0, 1e6]))
)
case(2, normal(2, 1.0, 1e6), "far_away")(lambda x: half_sum(x - 1e6))
for offset in ("1e5", "1e8", "-1e8"):
    case(3, normal(3), f"offset_{offset}")(lambda x, c=float(offset): half_sum(x) + c)

# Not functions of a point, or not the right ones.
state = np.random.default_rng(0)


def outside(value: Any) -> Any:
    """Make a function of what leaves JAX, with the gradient of a normal law."""

    @jax.custom_vjp
    def fn(x: Any) -> Any:
        return jax.pure_callback(value, jax.ShapeDtypeStruct((), jnp.float32), x, vmap_method="sequential")

    fn.defvjp(lambda x: (fn(x), x), lambda x, c: (-c * x,))
    return fn


def slow(x: Any) -> Any:
    time.sleep(0.002)
    return np.float32(-0.5 * np.sum(np.asarray(x) ** 2))


def off(factors: Any) -> Any:
    @jax.custom_vjp
    def fn(x: Any) -> Any:
        return half_sum(x)

    fn.defvjp(lambda x: (half_sum(x), x), lambda x, c: (-c * x * factors,))
    return fn


case(2, None, "noisy")(
    outside(lambda x: np.float32(-0.5 * np.sum(np.asarray(x) ** 2) + 0.3 * state.normal()))
)
case(2, normal(2), "slow")(outside(slow))
case(3, None, "gradient_1_percent")(off(1.01))
case(3, None, "gradient_of_one_1_percent")(off(jnp.array([1.0, 1.01, 1.0])))
case(3, None, "gradient_stopped")(lambda x: half_sum(jax.lax.stop_gradient(x)))
case(2, None, "index_beyond")(lambda x: -(x[5] ** 2) - x[0] ** 2)
case(2, None, "numpy_inside")(lambda x: -np.sum(np.exp(x) - x))
case(2, None, "if_inside")(lambda x: -(x[0] ** 2) if x[1] > 0 else -(x[0] ** 2) - x[1] ** 2)
case(2, None, "batch")(lambda x: -jnp.sum(x**2, axis=1))
case(2, None, "vector")(lambda x: -(x**2))
case(2, None, "integer")(lambda x: -jnp.round(jnp.sum(x**2)).astype(int))
case(2, normal(2), "double")(lambda x: half_sum(x.astype(jnp.float64)))


@case(2)
def raises(x: Any) -> Any:
    raise KeyError("no column 'age'")


def distance(x: np.ndarray, y: np.ndarray) -> float:
    """Return the largest distance of distribution functions, over columns."""
    worst = 0.0
    for one, other in zip(x.T, y.T, strict=True):
        both = np.concatenate([one, other])
        shares = [np.searchsorted(np.sort(each), both, side="right") / len(each) for each in (one, other)]
        worst = max(worst, float(np.abs(shares[0] - shares[1]).max()))
    return worst


def wrong(draws: np.ndarray, exact: np.ndarray, height: Any, rng: np.random.Generator) -> float:
    """Return by how much distribution functions differ: of coordinates, projections, and log densities."""
    low, middle, high = np.quantile(exact, (0.25, 0.5, 0.75), axis=0)
    ways = rng.normal(size=(exact.shape[1], 16))
    tables = []
    for x in (draws, exact):
        units = np.arcsinh((x - middle) / (high - low))
        tables.append(np.column_stack([x, units @ ways, height(x)]))
    return distance(*tables)


def one(name: str) -> None:
    """Print what the library says of one density, and whether its draws are right: a line after each part."""
    import pushforward as pf

    fn, dim, exact = CASES[name]
    target = pf.Target.from_log_density(fn, dim=dim, name=name)
    row: dict[str, Any] = {"name": name, "dim": dim, "told": "", "seconds_to_word": None, "distance": None}
    started, words = time.perf_counter(), []

    def tell(what: str, said: str) -> None:
        words.append(f"{what}: {said}")
        if row["seconds_to_word"] is None:
            row["seconds_to_word"], row["told"] = time.perf_counter() - started, f"{what}: {said[:600]}"

    def so_far() -> None:
        row["right"] = row["distance"] is not None and row["distance"] <= 0.03
        row["passed"] = bool(row["right"] or (row["told"] and row["seconds_to_word"] <= 30.0))
        print(json.dumps(row | {"seconds": time.perf_counter() - started, "words": words[:4]}), flush=True)

    report = pf.check_target(target)
    for line in report.lines:
        if line.verdict != "good" and line.what != "scales":
            tell(f"check_target, {line.what}", line.words)
    row["preflight_seconds"] = time.perf_counter() - started
    so_far()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = pf.fit(jax.random.key(0), target, budget="30s", progress=False)
    except (pf.FitError, ValueError, TypeError) as error:
        tell("fit", str(error))
        so_far()
        return
    for each in caught:
        tell("fit warns", str(each.message))
    row["outcome"], row["fit_seconds"] = fit.outcome.name, time.perf_counter() - started
    if not fit.outcome.name.startswith(("FINISHED", "CONVERGED", "OUT_OF")):
        tell("outcome", fit.outcome.value)
    if exact is not None:
        rng = np.random.default_rng(1)

        def height(x: np.ndarray) -> np.ndarray:
            return np.asarray(jax.vmap(target.log_density)(jnp.asarray(x, jnp.float32)))

        x = np.asarray(fit.sampler.sample(jax.random.key(1), N), np.float64)
        row["distance"] = wrong(x, np.asarray(exact(rng, N), np.float64), height, rng)
    so_far()
    checked = pf.check(jax.random.key(2), fit.sampler, target)
    row["verdict"], row["check_seconds"] = checked.verdict, checked.seconds
    levels = zip(checked.lines, checked.levels, strict=True)
    row["flagged"] = [line.name for line, level in levels if level in ("caution", "do not trust")]
    if checked.verdict != "trust":
        tell(f"check, {', '.join(row['flagged'])}", checked.verdict)
    so_far()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/hostile.jsonl"))
    parser.add_argument("--only", nargs="+", choices=CASES, default=tuple(CASES))
    parser.add_argument("--again", action="store_true", help="run rows that are in the file once more")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        one(options.run)
        return
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    rows = {row["name"]: row for row in map(json.loads, lines)}
    for name in options.only:
        if name in rows and not options.again:
            continue
        command = [sys.executable, __file__, "--run", name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                said, failed = process.communicate(timeout=400)
                ended = {} if process.returncode == 0 else {"error": failed.strip().splitlines()[-1:]}
            except subprocess.TimeoutExpired:
                process.kill()
                said, ended = process.communicate()[0], {"error": "more than 400 seconds"}
        # What was said before it ended counts.
        rows[name] = (json.loads(said.splitlines()[-1]) if said.strip() else {}) | ended
        rows[name] = {"name": name, "passed": False} | rows[name]
        row = rows[name]
        figures = f"{row.get('distance') or 0:7.3f}{row.get('seconds', 0):6.0f} s"
        passed = "passed" if row["passed"] else "FAILED"
        print(f"{name:26}{passed:8}{figures}  {row.get('told') or row.get('error', '')}"[:200], flush=True)
        options.out.write_text("".join(json.dumps(each) + "\n" for each in rows.values()))
    print(f"{sum(row['passed'] for row in rows.values())} of {len(rows)} passed")


if __name__ == "__main__":
    main()
