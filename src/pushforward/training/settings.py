"""All that can be chosen about a fit, in one frozen record that can be printed, stored and compared."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from pushforward.checks import check_choice, check_count, check_positive
from pushforward.networks import ACTIVATIONS, PIECEWISE_LINEAR

OBJECTIVES = ("kl", "fisher", "combined", "fisher_stein", "exact_kl", "ksd", "steingan")
MATCHINGS = ("exact", "sliced", "denoising", "kernel", "none")
NEEDS_SMOOTH_SCORE = ("fisher", "combined", "fisher_stein")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to fit; start from a method's with `preset("kl", width=128)`.

    **The map.** `frame`: `teacher` (found by tempered particles) or `identity`. `latent`: `normal`,
    `uniform` or `mixture` (fitted to the teacher's draws), of `latent_dim` coordinates: by default the
    target's and `extra_latents` more. `network`: `mlp`, `modulated` or `coupled`, with `width`, `depth`
    (hidden layers), `activation`, `skip`.

    **The score.** `matching`: how the sampler's own score is estimated; the score net's sizes;
    `score_steps` of `score_batch_size` draws for each sampler step, the net averaged over them with memory
    `score_ema`; `num_projections` for sliced, `sigma` for denoising matching and Fisher's projection form.

    **The training.** `objective`, `fisher_form`, `fisher_weight` (share of Fisher in `combined`),
    `num_steps`, `batch_size`, learning rates with a cosine decay to `final_rate` of their start, `clip`
    (global norm of the gradient), `ema` (memory of the averaged sampler), `forward_weight` (pull to the
    teacher's draws, falling to zero at 60 % of the steps), `tempering` (the inverse temperature at the
    start, rising to 1 over the first third).
    """

    method: str = "custom"
    frame: str = "teacher"
    latent: str = "normal"
    latent_dim: int | None = None
    extra_latents: int = 0
    network: str = "mlp"
    width: int = 64
    depth: int = 3
    activation: str = "silu"
    skip: bool = True

    matching: str = "exact"
    num_projections: int = 1
    sigma: float = 0.05
    score_width: int = 96
    score_depth: int = 3
    score_activation: str = "silu"
    score_steps: int = 4
    score_batch_size: int = 512
    score_ema: float = 0.95

    objective: str = "kl"
    fisher_form: str = "trace"
    fisher_weight: float = 0.5
    num_steps: int = 2500
    batch_size: int = 512
    learning_rate: float = 1e-3
    score_learning_rate: float = 2e-3
    beta1: float = 0.0
    final_rate: float = 0.01
    clip: float = 5.0
    ema: float = 0.99
    forward_weight: float = 0.0
    tempering: float = 1.0

    def __post_init__(self):
        for name, choices in {
            "frame": ("teacher", "identity"),
            "latent": ("normal", "uniform", "mixture"),
            "network": ("mlp", "modulated", "coupled"),
            "activation": ACTIVATIONS,
            "score_activation": ACTIVATIONS,
            "matching": MATCHINGS,
            "objective": OBJECTIVES,
            "fisher_form": ("trace", "projection"),
        }.items():
            check_choice(getattr(self, name), name, choices)
        for name in (
            "width",
            "depth",
            "num_projections",
            "score_width",
            "score_depth",
            "score_steps",
        ):
            check_count(getattr(self, name), name)
        for name in ("score_batch_size", "num_steps", "batch_size"):
            check_count(getattr(self, name), name)
        for name in ("sigma", "learning_rate", "score_learning_rate", "clip", "tempering"):
            check_positive(getattr(self, name), name)
        for name in ("final_rate", "forward_weight", "ema", "score_ema", "beta1", "fisher_weight"):
            check_positive(getattr(self, name), name, zero=True)
        for name in ("ema", "score_ema", "beta1"):
            if getattr(self, name) >= 1.0:
                raise ValueError(f"`{name}` must be below 1; got {getattr(self, name)}.")
        for name in ("tempering", "fisher_weight", "final_rate"):
            if getattr(self, name) > 1.0:
                raise ValueError(f"`{name}` must be at most 1; got {getattr(self, name)}.")
        if not isinstance(self.skip, bool):
            raise TypeError(f"`skip` must be True or False; got {self.skip!r}.")
        check_count(self.extra_latents, "extra_latents", at_least=0)
        if self.latent_dim is not None:
            check_count(self.latent_dim, "latent_dim")
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.latent == "mixture" and self.frame != "teacher":
            raise ValueError(
                "`latent='mixture'` is fitted to the teacher's draws; it needs `frame='teacher'`."
            )
        square = self.objective == "exact_kl" or self.network in ("modulated", "coupled")
        if square and (self.extra_latents or self.latent_dim) and self.latent != "mixture":
            raise ValueError(
                f"`latent_dim` and `extra_latents` must be left alone for network={self.network!r} with "
                f"objective={self.objective!r}, which need as many latents as coordinates."
            )
        if self.forward_weight > 0 and self.frame != "teacher":
            raise ValueError("`forward_weight` pulls to the teacher's draws; it needs `frame='teacher'`.")
        self._check_smoothness()
        if self._projected and self.matching != "denoising":
            raise ValueError(
                "`fisher_form='projection'` holds for draws with noise of size `sigma` added, whose score "
                f"`matching='denoising'` fits; got matching={self.matching!r}."
            )
        if self.objective in ("kl", "fisher", "combined") and self.matching == "none":
            raise ValueError(
                f"`matching` must not be 'none' for the objective {self.objective!r}, which needs a score."
            )

    @property
    def _projected(self) -> bool:
        return self.objective in ("fisher", "combined") and self.fisher_form == "projection"

    def _check_smoothness(self) -> None:
        if (
            self.objective in NEEDS_SMOOTH_SCORE
            and not self._projected
            and self.score_activation in PIECEWISE_LINEAR
        ):
            raise ValueError(
                f"`score_activation` must be twice differentiable for the Fisher objective; "
                f"{self.score_activation!r} has a zero second derivative almost everywhere, so the "
                "divergence of the score net would have no gradient. Use 'silu', 'gelu' or 'tanh'."
            )
        if self.objective == "exact_kl" and self.activation in PIECEWISE_LINEAR:
            raise ValueError(
                f"`activation` must be twice differentiable for the objective 'exact_kl'; with "
                f"{self.activation!r} the sampler's density jumps at every kink, and its score does not "
                "see the jumps. Use 'silu', 'squareplus' or 'tanh'."
            )

    def replace(self, **changes: Any) -> "Settings":
        """Return a copy with some fields changed; an unknown name is an error."""
        known = [f.name for f in dataclasses.fields(self)]
        for name in changes:
            check_choice(name, "setting", known)
        return dataclasses.replace(self, **changes)


# A sampler need not be one-to-one: latents to spare let it close the hole of a ring. Many steps at a rate
# that falls far, since the noise of the score net moves mass along a ridge, where nothing pulls it back.
_KL = Settings(
    method="kl", extra_latents=6, num_steps=4000, score_batch_size=256, final_rate=0.003, ema=0.995
)

# A map that starts as the identity on a mixture fitted to the teacher's draws.
_FROM_MIXTURE = Settings(latent="mixture", network="modulated", activation="squareplus")

PRESETS: dict[str, Settings] = {
    "default": _FROM_MIXTURE.replace(
        method="default",
        objective="exact_kl",
        matching="none",
        num_steps=2000,
        batch_size=1024,
        beta1=0.9,
        forward_weight=1.0,
        final_rate=0.02,
        ema=0.998,
    ),
    "kl": _KL,
    # Steps thirty times smaller than KL's: the divergence of the score net, not its value, drives Fisher,
    # and a sampler that outruns its score net contracts.
    "fisher": _FROM_MIXTURE.replace(
        method="fisher",
        objective="fisher",
        num_steps=500,
        learning_rate=3e-5,
        score_learning_rate=3e-4,
        score_ema=0.98,
        batch_size=1024,
        score_batch_size=1024,
    ),
    "combined": _KL.replace(method="combined", objective="combined", learning_rate=5e-4, score_steps=6),
    "fisher_stein": _KL.replace(method="fisher_stein", objective="fisher_stein", learning_rate=2e-4),
    "kernel": _KL.replace(method="kernel", matching="kernel", batch_size=256),
    "ksd": _KL.replace(method="ksd", objective="ksd", matching="none"),
    "steingan": _KL.replace(method="steingan", objective="steingan", matching="none"),
}


def preset(method: str = "default", **changes: Any) -> Settings:
    """Return the settings of a method, with some of them changed."""
    return PRESETS[check_choice(method, "method", PRESETS)].replace(**changes)
