"""One-shot samplers for un-normalised densities: train once, then draw millions in a single pass.

Names are imported when they are first used, so that `import pushforward.runtime` needs NumPy alone and the
command line answers `--help` without JAX. A new name is a line in `_NAMES` and one for type checkers.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pushforward import distributed as distributed
    from pushforward import runtime as runtime
    from pushforward import targets as targets
    from pushforward.base import Algorithm as Algorithm
    from pushforward.base import ExactTarget as ExactTarget
    from pushforward.base import Target as Target
    from pushforward.container import BadFileError as BadFileError
    from pushforward.draws import Draws as Draws
    from pushforward.draws import load_draws as load_draws
    from pushforward.models import from_numpyro as from_numpyro
    from pushforward.models import from_pymc as from_pymc
    from pushforward.payback import BreakEven as BreakEven
    from pushforward.payback import break_even as break_even
    from pushforward.preflight import check_target as check_target
    from pushforward.sampler import Sampler as Sampler
    from pushforward.sampler import load as load
    from pushforward.training import Fit as Fit
    from pushforward.training import FitError as FitError
    from pushforward.training import Outcome as Outcome
    from pushforward.training import Settings as Settings
    from pushforward.training import fit as fit
    from pushforward.training import preset as preset
    from pushforward.training.posterior import DataPlan as DataPlan
    from pushforward.training.posterior import fit_posterior as fit_posterior
    from pushforward.trust import Census as Census
    from pushforward.trust import CheckSettings as CheckSettings
    from pushforward.trust import check as check

__version__ = "0.1.0"

_MODULES = ("distributed", "runtime", "targets")

_NAMES = {
    "Algorithm": "base",
    "ExactTarget": "base",
    "Target": "base",
    "BadFileError": "container",
    "Draws": "draws",
    "load_draws": "draws",
    "from_numpyro": "models",
    "from_pymc": "models",
    "check_target": "preflight",
    "BreakEven": "payback",
    "break_even": "payback",
    "Sampler": "sampler",
    "load": "sampler",
    "Fit": "training",
    "FitError": "training",
    "Outcome": "training",
    "Settings": "training",
    "fit": "training",
    "preset": "training",
    "DataPlan": "training.posterior",
    "fit_posterior": "training.posterior",
    "Census": "trust",
    "CheckSettings": "trust",
    "check": "trust",
}
"""Each public name and the module it comes from."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Kept, so that this function is asked for each name only once.
    value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES} - {"Any", "TYPE_CHECKING", "importlib"})
