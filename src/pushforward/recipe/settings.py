"""How a network is trained: its parts by name or as instances, and the numbers of its training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pushforward.checks import check_choice, check_count, check_positive
from pushforward.frozen import Record
from pushforward.networks import ACTIVATIONS, PIECEWISE_LINEAR
from pushforward.objectives.base import Objective
from pushforward.objectives.named import NAMED as OBJECTIVES

SQUARE = ("modulated", "coupled")
CHOICES = {
    "frame": ("annealed", "identity"), "fisher_form": ("trace", "projection"),
    "activation": ACTIVATIONS, "score_activation": ACTIVATIONS,
}  # fmt: skip
PARTS = {
    "objective": (OBJECTIVES, ("surrogate",)),
    "matching": (("exact", "sliced", "denoising", "kernel", "none"), ("loss", "fit")),
    "latent": (("normal", "uniform", "mixture"), ("log_density",)),
    "network": (("mlp", *SQUARE), ("__call__",)),
}
"""The names of each part, and the methods of which an instance has one."""

OPEN = ("batch_size", "latent_dim")
"""Fields that may be `None`."""

COUNTS = (*OPEN, "width", "depth", "extra_latents", "num_projections", "score_width", "score_depth",
          "score_steps", "score_batch_size", "num_steps")  # fmt: skip
POSITIVE = ("sigma", "learning_rate", "score_learning_rate", "clip", "tempering", "tempering_until")
SHARES = ("final_rate", "fisher_weight", "forward_until", "forward_left", "tempering", "tempering_until")
DECAYS = ("ema", "score_ema", "beta1", "beta2", "score_beta1")


@dataclass(frozen=True, kw_only=True)
class Settings(Record):
    """How to train a network; start from a method's settings with `preset("kl", width=128)`.

    A part is given by its name or as an instance: an `Objective`, a matching (with `loss` or `fit`), a latent
    law, or a function `network(key, num_latents, dim)` that makes a network. What is `None` is open: the fit
    fills it for the target, and never changes what is set.
    """

    method: str = "custom"
    frame: str = "annealed"
    """`annealed`: coordinates found by tempered particles; `identity`: the target's own."""
    latent: Any = "normal"
    """`normal`, `uniform`, or `mixture`: fitted to the particles."""
    latent_dim: int | None = None
    extra_latents: int = 0
    """Latents: so many, or the target's coordinates and so many more."""
    network: Any = "mlp"
    """`mlp`, `modulated` (free, starts as the identity) or `coupled` (one-to-one in any dimension)."""
    width: int = 64
    depth: int = 3
    activation: str = "silu"
    skip: bool = True
    """Units of a hidden layer, hidden layers, what they apply, and whether the latent is added at the end."""

    matching: Any = "exact"
    """How the sampler's own score is fitted: `exact`, `sliced`, `denoising`, `kernel`, or `none`."""
    num_projections: int = 1
    """Projections of sliced matching."""
    sigma: float = 0.05
    """Noise of denoising matching, and of Fisher's projection form."""
    score_width: int = 96
    score_depth: int = 3
    score_activation: str = "silu"
    score_steps: int = 4
    score_batch_size: int = 512
    """The score net, its steps for each step of the sampler, and draws of each."""
    score_ema: float = 0.95
    score_beta1: float = 0.9
    """Memory of the averaged score net, which the objective sees; Adam's first decay for it."""

    objective: Any = "kl"
    """`kl`, `fisher`, `combined`, `fisher_stein`, `exact_kl`, `ksd`, `steingan`."""
    fisher_form: str = "trace"
    fisher_weight: float = 0.5
    """`trace` or `projection`; Fisher's share in `combined`."""
    num_steps: int = 2500
    batch_size: int | None = 512
    learning_rate: float = 1e-3
    score_learning_rate: float = 2e-3
    final_rate: float = 0.01
    """Steps, draws of each, and Adam's rates, which fall by a cosine to this share."""
    beta1: float = 0.0
    beta2: float = 0.99
    """Adam's decays; the second is short, since the gradient's size falls by orders during a fit."""
    clip: float = 5.0
    """Norm at which a gradient is cut."""
    ema: float = 0.99
    """Memory of the averaged sampler."""
    forward_weight: float = 0.0
    forward_until: float = 0.6
    """Weight of the pull to the particles, and the share of steps at which that of a free map is gone."""
    rise: tuple[float, float] = (0.0, 0.02)
    forward_left: float = 0.3
    """Where the map is coupled: shares of steps between which the target's weight rises and the particles'
    falls to this share. A map far from the target would be led by its few wildest draws."""
    tempering: float = 1.0
    tempering_until: float = 1 / 3
    """Inverse temperature at the start, and the share of steps at which it is 1."""
    judged: bool = False
    """Whether the judge may end, skip or undo the training: the default's, not a method's of the paper."""

    def __post_init__(self):
        if self.frame == "teacher":  # files and commands of version 0.1 say so
            object.__setattr__(self, "frame", "annealed")
        if isinstance(self.rise, list):
            object.__setattr__(self, "rise", tuple(self.rise))
        check_choice(self.method, "method", [self.method])
        for name, choices in CHOICES.items():
            check_choice(getattr(self, name), name, choices)
        for name, (named, methods) in PARTS.items():
            _check_part(getattr(self, name), name, named, methods)
        for name in COUNTS:
            if not (name in OPEN and getattr(self, name) is None):
                check_count(getattr(self, name), name, at_least=int(name != "extra_latents"))
        for name in (*POSITIVE, *SHARES, *DECAYS, "forward_weight"):
            value = getattr(self, name)
            check_positive(value, name, zero=name not in POSITIVE)
            if name in DECAYS and value >= 1.0:
                raise ValueError(f"`{name}` must be below 1; got {value}.")
            if name in SHARES and value > 1.0:
                raise ValueError(f"`{name}` must be at most 1; got {value}.")
        for name in ("skip", "judged"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"`{name}` must be True or False; got {getattr(self, name)!r}.")
        for wrong, why in self._combinations():
            if wrong:
                raise ValueError(why)

    def _combinations(self) -> Iterator[tuple[Any, str]]:
        """Yield what cannot go together: whether it does here, and what to say of it."""
        annealed, objective = self.frame == "annealed", self.objective
        why = "`latent='mixture'` is fitted to the annealed particles; it needs `frame='annealed'`."
        yield self.latent == "mixture" and not annealed, why
        square = objective == "exact_kl" or self.network in SQUARE
        yield (
            square and (self.extra_latents or self.latent_dim) and self.latent != "mixture",
            f"`latent_dim` and `extra_latents` must be left alone for network={self.network!r} with "
            f"objective={objective!r}, which need as many latents as coordinates.",
        )
        why = "`forward_weight` pulls to the annealed particles; it needs `frame='annealed'`."
        yield self.forward_weight > 0 and not annealed, why
        yield (
            self.main_objective.wants.smooth and self.score_activation in PIECEWISE_LINEAR,
            f"`score_activation` must be twice differentiable for the Fisher objective; "
            f"{self.score_activation!r} has a zero second derivative almost everywhere, so the "
            "divergence of the score net would have no gradient. Use 'silu', 'gelu' or 'tanh'.",
        )
        yield (
            objective == "exact_kl" and self.activation in PIECEWISE_LINEAR,
            f"`activation` must be twice differentiable for the objective 'exact_kl'; with "
            f"{self.activation!r} the sampler's density jumps at every kink, and its score does not "
            "see the jumps. Use 'silu', 'squareplus' or 'tanh'.",
        )
        projected = objective in ("fisher", "combined") and self.fisher_form == "projection"
        yield (
            projected and self.matching != "denoising",
            "`fisher_form='projection'` holds for draws with noise of size `sigma` added, whose score "
            f"`matching='denoising'` fits; got matching={self.matching!r}.",
        )
        why = f"`matching` must not be 'none' for the objective {objective!r}, which needs a score."
        yield self.main_objective.wants.fitted == "score" and self.matching == "none", why

    @property
    def main_objective(self) -> Objective:
        """The objective, made where it is given by name."""
        return OBJECTIVES[self.objective](self) if isinstance(self.objective, str) else self.objective


def _check_part(value: Any, name: str, named: Any, methods: tuple[str, ...]) -> None:
    """Raise unless a part is one of the named or has one of the methods that make it such a part."""
    if isinstance(value, str):
        check_choice(value, name, named)
    elif isinstance(value, type):
        raise TypeError(f"`{name}` must be an instance, not a class: write `{value.__name__}()`.")
    elif not any(callable(getattr(value, method, None)) for method in methods):
        wanted = " or ".join(f"`{method}`" for method in methods)
        raise TypeError(
            f"`{name}` must be one of {', '.join(sorted(named))}, or an object with {wanted}; "
            f"got {type(value).__name__}."
        )
