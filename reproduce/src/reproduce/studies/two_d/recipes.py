"""What each trained method is, in each preset: one configuration for all targets."""

from pushforward import Settings as Training
from pushforward import methods, preset
from pushforward.checks import check_choice
from pushforward.recipe.methods import Method
from reproduce.studies.two_d.settings import Settings

# The main text of the paper: four linear maps of 400 units, ELU, Adam at 2e-5 without a schedule, batches
# of 5,000, five score steps, 10,000 iterations, and a Gaussian latent that starts where it starts.
_PAPER = Training(
    method="kl", frame="identity", width=400, depth=3, activation="elu", skip=False,
    score_width=400, score_depth=3, score_activation="elu", score_steps=5, score_batch_size=5000,
    num_steps=10_000, batch_size=5000, learning_rate=2e-5, score_learning_rate=2e-5, beta1=0.9,
    final_rate=1.0, clip=1e6, ema=0.0,
)  # fmt: skip

# From the frame that KL training starts from, without tempering.
_FRAMED = Training(
    method="ksd-ns", objective="ksd", matching="none", extra_latents=6, score_batch_size=256, ema=0.995,
    num_steps=1500, batch_size=256, beta1=0.9, final_rate=0.003,
)  # fmt: skip
_PLAIN = _FRAMED.replace(
    method="kl-plain", objective="kl", matching="exact", num_steps=4000, batch_size=512, beta1=0.0,
    frame="identity",
)  # fmt: skip

_OURS: dict[str, Training] = {
    "default": preset("default"),
    "kl": preset("kl"),
    "fisher": preset("fisher"),
    "kl-plain": _PLAIN,
    "fisher-plain": _PLAIN.replace(
        method="fisher-plain", objective="fisher", learning_rate=2e-4, score_learning_rate=1e-3,
        score_steps=8, num_steps=2000,
    ),
    "ksd-ns": _FRAMED,
    "steingan": _FRAMED.replace(method="steingan", objective="steingan"),
}  # fmt: skip

_PAPERS: dict[str, Training] = _OURS | {
    "kl": _PAPER,
    # The trace form needs second derivatives of the score net, which ELU's kink does not have.
    "fisher": _PAPER.replace(method="fisher", objective="fisher", score_activation="gelu"),
    "ksd-ns": _PAPER.replace(method="ksd-ns", objective="ksd", matching="none"),
    "steingan": _PAPER.replace(method="steingan", objective="steingan", matching="none"),
}

OURS: dict[str, Method] = {name: methods.of_settings(training) for name, training in _OURS.items()}
PAPERS: dict[str, Method] = {name: methods.of_settings(training) for name, training in _PAPERS.items()}


def recipe(method: str, settings: Settings) -> Method:
    """Return how `method` is trained under these settings: its stages and its recipe."""
    table = PAPERS if settings.preset == "paper" else OURS
    return settings.asked(table[check_choice(method, "method", table)])
