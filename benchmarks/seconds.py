"""How long until there is a sampler: fits in fresh processes with nothing compiled, beside NumPyro's NUTS.

    python benchmarks/seconds.py [--keys 3] [--out results/seconds.jsonl] [--targets banana schools ...]

Every figure is of a process of its own with an empty compilation cache, from after the imports to draws in
hand: a fit and 10,000 draws of its sampler, or four chains of 2,500 draws after 1,000 of warm-up.
The two take turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from reproduce.records import Header, Record, write

TARGETS = (
    *("banana_function", "gaussian", "mog2", "rosenbrock", "donut", "funnel", "squiggle"),
    *("schools", "schools_centred"),
)
TRIALS = ("default", "nuts")
BARS = {"banana_function": 8.0, "schools": 12.0, "schools_centred": 20.0}
BARS |= dict.fromkeys(("gaussian", "mog2", "rosenbrock", "donut", "funnel", "squiggle"), 10.0)

MODELS = """
import json, sys, time
import jax, jax.numpy as jnp, numpy as np
import numpyro, numpyro.distributions as dist
import pushforward as pf
from pushforward import targets
name, method, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
count = {"compiled": 0, "seconds": 0.0}
def listen(event, duration, **_):
    if event.startswith("/jax/core/compile"):
        count["compiled"] += "backend_compile" in event
        count["seconds"] += duration
jax.monitoring.register_event_duration_secs_listener(listen)
sigma = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
y = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
def schools(centred):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", 8):
        if centred:
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
        else:
            theta = mu + tau * numpyro.sample("z", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)
started = time.perf_counter()
centred = name == "schools_centred"
if name.startswith("schools"):
    build = lambda: pf.from_numpyro(schools, centred)
elif name == "banana_function":
    density = lambda x: -0.5 * (x[0] ** 2 + (x[1] - x[0] ** 2) ** 2 / 0.25)
    build = lambda: pf.Target.from_log_density(density, dim=2)
else:
    build = lambda: targets.get(name)
if method == "default":
    fit = pf.fit(jax.random.key(seed), build(), progress=False, throw=False)
    jax.block_until_ready(fit.sampler.sample(jax.random.key(seed + 100), 10_000))
    figures = {"efficiency": fit.sampler.metrics.get("efficiency") if hasattr(fit.sampler, "metrics")
               else json.loads(json.dumps(fit.state.metrics)).get("efficiency")}
else:
    from numpyro.infer import MCMC, NUTS
    words = {"num_warmup": 1000, "num_samples": 2500, "num_chains": 4, "chain_method": "vectorized",
             "progress_bar": False}
    if name.startswith("schools"):
        chains = MCMC(NUTS(schools), **words)
        chains.run(jax.random.key(seed), centred)
    else:
        target = build()
        chains = MCMC(NUTS(potential_fn=lambda x: -target.log_density(x)), **words)
        chains.run(jax.random.key(seed), init_params=jax.random.normal(jax.random.key(seed), (4, target.dim)))
    jax.block_until_ready(chains.get_samples())
    figures = {}
figures |= {"seconds": time.perf_counter() - started, "programs": count["compiled"],
            "compiling_seconds": count["seconds"]}
print(json.dumps(figures))
"""


def one(target: str, method: str, seed: int) -> dict[str, float]:
    """Return the figures of one fresh process."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PUSHFORWARD_CACHE": cache}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        words = [sys.executable, "-c", MODELS, target, method, str(seed)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/seconds.jsonl"))
    parser.add_argument("--targets", nargs="+", default=TARGETS, choices=TARGETS)
    options = parser.parse_args()
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for seed in range(options.keys):
        for target in options.targets:
            for method in TRIALS:
                figures = one(target, method, seed)
                found.setdefault((target, method), []).append(figures)
                print(target, method, seed, figures, flush=True)
    command = f"python benchmarks/seconds.py --keys {options.keys}"
    rows = []
    for (target, method), each in found.items():
        for name in each[0]:
            values = [figures[name] for figures in each if figures[name] is not None]
            spread = statistics.stdev(values) if len(values) > 1 else None
            value = statistics.median(values) if values else float("nan")
            rows.append(
                Record("seconds", "cpu", method, target, name, value, spread, None, max(1, len(values)), 0)
            )
    write(options.out, Header.of_this_machine("seconds", "cpu", 0, command), rows)
    table = Table("target", *TRIALS, "ratio", "bar", title="seconds, median of fresh processes")
    for target in options.targets:
        mine, theirs = (statistics.median(f["seconds"] for f in found[target, m]) for m in TRIALS)
        table.add_row(target, f"{mine:.1f}", f"{theirs:.1f}", f"{mine / theirs:.2f}", f"{BARS[target]:g}")
    Console().print(table, f"written to {options.out}")


if __name__ == "__main__":
    main()
