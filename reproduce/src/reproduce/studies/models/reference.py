"""The truth: NumPyro's own NUTS on NumPyro's own model, long enough that its errors do not matter.

Nothing of ours takes part: neither the front end's density nor the maps of constraints could be wrong here
and in the fit alike.
"""

import math
import time
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from reproduce.records import Record
from reproduce.studies.models.cases import CASES
from reproduce.studies.models.settings import Settings
from reproduce.studies.row import Row
from reproduce.studies.store import Store

COST, DIVERGENT = "(seconds)", "(divergent)"  # names that no site of a model has


class Truth(NamedTuple):
    """What is believed of one number, and how well it is known."""

    mean: float
    sd: float
    mean_error: float  # standard error of the mean, in standard deviations
    sd_error: float  # standard error of the standard deviation, as a share of it
    ess: float  # effective draws, for the middle or the tails of the law: the fewer of the two
    rhat: float


def numbers(values: dict[str, Any], leading: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield every single number of named arrays by name, as `theta[3]`; the `leading` axes are draws."""
    for name, value in values.items():
        array = np.asarray(value)
        for place in np.ndindex(*array.shape[leading:]):
            label = f"[{','.join(map(str, place))}]" if place else ""
            yield name + label, array[(..., *place)].astype(np.float64)


def truths(name: str, settings: Settings, store: Store) -> dict[str, Truth]:
    """Return the truth about every number of a model."""
    return {label: truth_of(chains) for label, chains in numbers(_sites(chains_of(name, settings, store)), 2)}


def reference_row(row: Row, settings: Settings, store: Store) -> list[Record]:
    """Make the chains and record how far they can be trusted."""
    kept = chains_of(row.target, settings, store)
    found = [truth_of(chains) for _, chains in numbers(_sites(kept), 2)]
    chains, draws = next(iter(_sites(kept).values())).shape[:2]
    figures = {
        "rhat": max(truth.rhat for truth in found),
        "ess": min(truth.ess for truth in found),
        "divergent": float(kept[DIVERGENT]) / (chains * draws),
        "reference_seconds": float(kept[COST]),
    }
    return settings.figures(row, figures, n=chains * draws)


def chains_of(name: str, settings: Settings, store: Store) -> dict[str, np.ndarray]:
    """Return draws by site, `(chains, draws, *shape)`; kept ones if they were made in the same way."""
    case, place = CASES[name], chains_name(name, settings)
    kept = store.arrays(place)
    if kept is None:
        kept = _run(case.truth, case.data(), settings)
        store.keep_arrays(place, kept)
    return kept


def chains_name(name: str, settings: Settings) -> str:
    """Return the name under which the chains of a model are kept."""
    s = settings
    return f"chains-{CASES[name].truth.__name__}-{s.chains}-{s.warmup}-{s.length}"


def _run(model: Any, given: tuple[Any, ...], s: Settings) -> dict[str, np.ndarray]:
    from numpyro.infer import MCMC, NUTS

    mcmc = MCMC(
        NUTS(model),
        num_warmup=s.warmup,
        num_samples=s.length,
        num_chains=s.chains,
        chain_method="sequential",
        progress_bar=False,
    )
    started = time.monotonic()
    key = jax.random.key(zlib.crc32(model.__name__.encode()))
    mcmc.run(key, *given, extra_fields=("diverging",))
    sites = {name: np.asarray(value) for name, value in mcmc.get_samples(group_by_chain=True).items()}
    divergent = np.sum(mcmc.get_extra_fields()["diverging"])
    return {**sites, COST: np.array(time.monotonic() - started), DIVERGENT: np.asarray(divergent)}


def _sites(kept: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: value for name, value in kept.items() if name not in (COST, DIVERGENT)}


def truth_of(chains: Float[np.ndarray, "chains draws"]) -> Truth:
    """Return what the chains of one number say of it."""
    import arviz

    ess = {method: float(arviz.ess(chains, method=method)) for method in ("bulk", "tail", "mean", "sd")}
    return Truth(
        mean=float(chains.mean()),
        sd=float(chains.std()),
        mean_error=1.0 / math.sqrt(ess["mean"]),
        sd_error=sd_error(chains, ess["sd"]),
        ess=min(ess["bulk"], ess["tail"]),
        rhat=float(arviz.rhat(chains)),
    )


def sd_error(values: Float[np.ndarray, "..."], ess: float) -> float:
    """Return the relative standard error of the standard deviation of so many effective draws."""
    centred = values - values.mean()
    kurtosis = float(np.mean(centred**4) / np.mean(centred**2) ** 2)
    return math.sqrt(max(kurtosis - 1.0, 0.0) / (4.0 * ess))
