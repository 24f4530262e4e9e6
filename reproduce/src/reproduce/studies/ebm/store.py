"""What the study leaves beside its records: images for figures, checkpoints of stages."""

import json

from pushforward.files import BadFileError, write_atomically
from reproduce.studies.ebm.settings import Settings
from reproduce.studies.store import Beside

ARCHITECTURE = (
    "preset", "seed", "max_steps", "made_images", "energy_steps", "teacher_images", "sigma_min", "sigma_max",
    "classifier", "classifier_widths", "energy",
    "energy_widths", "energy_middle", "residual_base", "mixing", "late_mixing", "late_from",
    "teacher_evaluations", "generator", "latent", "generator_widths", "kinds",
)  # fmt: skip
"""What must be the same for a folder's checkpoints to be of use."""


class Store(Beside):
    """Figures for the report, and checkpoints of the stages."""

    study = "ebm"

    def claim(self, settings: Settings) -> None:
        """Say whose checkpoints these are; those of other networks are refused."""
        mine = json.loads(json.dumps({name: getattr(settings, name) for name in ARCHITECTURE}))
        path = self.pieces / "settings.json"
        if not path.exists():
            self.pieces.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(mine).encode())
            return
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise BadFileError(f"{path} cannot be read. Begin again with `--fresh`.") from None
        differ = [name for name in ARCHITECTURE if theirs.get(name) != mine[name]]
        if differ:
            name = differ[0]
            raise ValueError(
                f"{self.pieces} holds checkpoints of other settings: `{name}` was {theirs.get(name)!r} "
                f"and is {mine[name]!r}. Choose another folder, or begin again with `--fresh`."
            )
