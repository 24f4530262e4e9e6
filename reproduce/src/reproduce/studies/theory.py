"""The paper's identities, shown in numbers: both gradients, Proposition 1, Theorem 2, and Student's t.

A map with a density in closed form bends a normal law in the plane. So each side of an identity can be had
on its own: the left from the density, by quadrature; the right from the objectives of the library, on draws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import stats

from pushforward import methods
from pushforward.base import Score, Target
from pushforward.objectives import KL, Fisher, FisherStein
from pushforward.objectives.base import Objective, View
from pushforward.targets import get
from reproduce.records import Record, of_recipe
from reproduce.studies.fitting import fit_to_the_end
from reproduce.studies.row import Row
from reproduce.studies.running import Observe, Study, Work, watching
from reproduce.studies.settings import FEW, FitSettings
from reproduce.studies.store import Figures
from reproduce.targets import student_t

PLANE = ("gaussian", "mog2", "rosenbrock", "squiggle")
STUDENT_T = ("student_t_5", "student_t_3", "student_t_2")
IDENTITIES = ("kl", "fisher", "fisher-first-term", "proposition-1", "theorem-2")
FITS = ("default", "kl", "fisher")


@dataclass(frozen=True, kw_only=True)
class Settings(FitSettings):
    """What is shown, and on how many draws.

    `sizes` of samples, over `repeats` each; `nodes` of the quadrature along each latent; `weight`: the
    critic's penalty, the paper's lambda. Of Student's t: `quantile_n` draws.
    """

    study: ClassVar = "theory"
    choices: ClassVar = {"targets": (*PLANE, *STUDENT_T), "methods": (*IDENTITIES, *FITS)}

    targets: tuple[str, ...] = (*PLANE, *STUDENT_T)
    methods: tuple[str, ...] = (*IDENTITIES, *FITS)
    sizes: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    repeats: int = 16
    nodes: int = 96
    weight: float = 0.3
    quantile_n: int = 1_000_000


PRESETS = {
    "smoke": Settings(
        preset="smoke", targets=("gaussian", "student_t_5"), sizes=(50, 200), repeats=4, nodes=32,
        max_steps=3, quantile_n=2000, recipe_changes=FEW,
    ),
    "cpu": Settings(preset="cpu"),
}  # fmt: skip


class Bend(eqx.Module):
    """`x_1 = m_1 + t_1 z_1`, `x_2 = m_2 + t_2 z_2 + b z_1^2`: a curved normal law with a known density."""

    shift: Float[Array, "2"]
    log_scale: Float[Array, "2"]
    bend: Float[Array, ""]

    def __call__(self, z: Float[Array, "2"]) -> Float[Array, "2"]:
        """Map one latent."""
        return self.shift + jnp.exp(self.log_scale) * z + jnp.array([0.0, self.bend * z[0] ** 2])

    def log_density(self, x: Float[Array, "2"]) -> Float[Array, ""]:
        """Return the log density of the draws, up to a constant."""
        first, second = (x - self.shift) * jnp.exp(-self.log_scale)
        second = second - self.bend * first**2 * jnp.exp(-self.log_scale[1])
        return -0.5 * (first**2 + second**2) - self.log_scale.sum()

    def score(self, x: Float[Array, "2"]) -> Float[Array, "2"]:
        """Return the gradient of the log density at a point."""
        return jax.grad(self.log_density)(x)


def sampler() -> Bend:
    """Return the sampler: wide enough for the six densities, and none of them."""
    return Bend(jnp.array([0.3, -0.4]), jnp.log(jnp.array([1.2, 0.8])), jnp.asarray(0.3))


Mean = Callable[[Callable[[Float[Array, "2"]], Any]], Any]
"""An expectation over latents, of a function of one."""


def quadrature(nodes: int) -> Mean:
    """Return the expectation by Gauss and Hermite's nodes."""
    places, weights = np.polynomial.hermite_e.hermegauss(nodes)
    z = jnp.asarray(np.stack(np.meshgrid(places, places), -1).reshape(-1, 2), jnp.float32)
    w = jnp.asarray(np.outer(weights, weights).ravel() / weights.sum() ** 2, jnp.float32)
    return lambda f: jnp.tensordot(w, jax.vmap(f)(z), 1)


def divergence_gradients(g: Bend, target: Target, weight: float, mean: Mean) -> dict[str, Any]:
    """Return the gradients that the paper's identities speak of, from the density itself."""

    def kl(g: Bend) -> Float[Array, ""]:
        return mean(lambda z: g.log_density(g(z)) - target.log_density(g(z)))

    def fisher(g: Bend) -> Float[Array, ""]:
        return 0.5 * mean(lambda z: jnp.sum((g.score(g(z)) - target.score(g(z))) ** 2))

    found = {"kl": jax.grad(kl)(g), "fisher": jax.grad(fisher)(g)}
    found["fisher-first-term"] = found["fisher"]
    found["theorem-2"] = jax.tree.map(lambda leaf: leaf / (2 * weight), found["fisher"])
    # The largest value that the critic can reach, and its slopes there, which are zero.
    found["proposition-1"] = jnp.append(fisher(g) / (2 * weight), jnp.zeros(3))
    return found


def estimate(method: str, target: Target, weight: float, z: Float[Array, "n 2"]) -> Any:
    """Return a side of an identity as training sees it: by the library's objectives, on draws."""
    frozen, key = sampler(), jax.random.key(0)

    def best(x: Float[Array, "2"]) -> Float[Array, "2"]:
        # Proposition 1's critic.
        return (target.score(x) - frozen.score(x)) / (2 * weight)

    def value(objective: Objective, field: Score, g: Bend) -> Float[Array, ""]:
        return objective.surrogate(key, g, z, View(target, field, jnp.zeros(())))

    def first_term(g: Bend) -> Float[Array, ""]:
        gaps = jax.vmap(lambda point: frozen.score(g(point)) - target.score(g(point)))(z)
        return 0.5 * jnp.mean(jnp.sum(gaps**2, axis=-1))

    def moved(amount: Float[Array, "3"]) -> Float[Array, ""]:
        def critic(x):
            return (1.0 + amount[0]) * best(x) + amount[1] * jnp.tanh(x) + amount[2] * jnp.sin(x[::-1])

        return value(FisherStein(weight), critic, frozen)

    if method == "proposition-1":
        at_best, slopes = jax.value_and_grad(moved)(jnp.zeros(3))
        return jnp.append(at_best, slopes)
    loss = {
        "kl": partial(value, KL(), frozen.score),
        "fisher": partial(value, Fisher(), frozen.score),
        "fisher-first-term": first_term,
        "theorem-2": partial(value, FisherStein(weight), best),
    }[method]
    return eqx.filter_grad(loss)(frozen)


def flat(tree: Any) -> np.ndarray:
    """Return all numbers of a tree."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def identity_row(row: Row, settings: Settings) -> list[Record]:
    """Return the relative error of an identity at each size of sample, and of the mean at the largest."""
    target, mean = get(row.target), quadrature(settings.nodes)
    truth = flat(divergence_gradients(sampler(), target, settings.weight, mean)[row.method])
    once = eqx.filter_jit(partial(estimate, row.method, target, settings.weight))

    def seen(n: int) -> np.ndarray:
        keys = jax.random.split(jax.random.fold_in(row.key("draws"), n), settings.repeats)
        return np.array([flat(once(jax.random.normal(key, (n, 2)))) for key in keys])

    found, size = {n: seen(n) for n in settings.sizes}, np.linalg.norm(truth)
    middle = found[max(found)].mean(axis=0)
    figures = {"bias": np.linalg.norm(middle - truth) / size}
    figures["cosine"] = middle @ truth / size / np.linalg.norm(middle)
    errors = {n: np.linalg.norm(x - truth, axis=1) / size for n, x in found.items()}
    records = [settings.record(row, f"error_{n}", values, n=n) for n, values in errors.items()]
    return [*records, *settings.figures(row, figures)]


LEVELS = np.array([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995])
"""Where the tails of a one-dimensional sampler are compared: 99 % of the mass."""


def student_t_row(row: Row, settings: Settings, folder: Path) -> list[Record]:
    """Fit Student's t and compare quantiles."""
    how = settings.asked(methods.METHODS[row.method])
    df = float(row.target.rsplit("_", 1)[1])
    done = fit_to_the_end(jax.random.key(row.seed), student_t(df), method=how)
    draws = np.asarray(done.sampler.sample(row.key("quantiles"), settings.quantile_n))[:, 0]
    errors = np.abs(np.quantile(draws, LEVELS) / stats.t.ppf(LEVELS, df) - 1.0)
    inner = (LEVELS >= 0.05) & (LEVELS <= 0.95)
    levels = np.array([0.001, 0.002, *LEVELS, 0.998, 0.999])
    quantiles = {f"quantiles/{row.method}/{row.target}": np.quantile(draws, levels).astype(np.float32)}
    Figures(folder / f"{settings.study}_draws.npz").add({"levels": levels, **quantiles})
    figures = {"quantile_error": errors.max(), "quantile_error_inner": errors[inner].max()}
    figures |= {"median_error": abs(np.median(draws)), "train_seconds": done.seconds}
    return of_recipe(how.recipe, settings.figures(row, figures, n=settings.quantile_n))


def rows(settings: Settings) -> list[Row]:
    """Return the identities on each density of the plane, then the fits of Student's t."""
    pairs = [*((m, t) for m in IDENTITIES for t in PLANE), *((m, t) for t in STUDENT_T for m in FITS)]
    found = [Row(method, target, 0) for method, target in pairs]
    return [row for row in found if row.target in settings.targets and row.method in settings.methods]


def _work(settings: Settings, folder: Path, observe: Observe) -> Work:
    def of(row: Row) -> list[Record]:
        known = row.target in STUDENT_T
        return student_t_row(row, settings, folder) if known else identity_row(row, settings)

    return Work(of, watching())


STUDY = Study("theory", rows, _work)
run, plan = STUDY.run, STUDY.plan
