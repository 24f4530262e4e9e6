"""One-shot samplers for un-normalised densities: train once, then draw millions in a single pass.

Names are imported when they are first used, so that `import pushforward.runtime` needs NumPy alone and the
command line answers `--help` without JAX. A new name is a line in `__init__.pyi`.
"""

from pushforward.lazy import attach

__version__ = "0.1.0"

_get, __dir__ = attach(__name__)


def __getattr__(name: str) -> object:
    try:
        return _get(name)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("pushforward."):
            raise
        raise ModuleNotFoundError(
            f"`pushforward.{name}` needs the package `pushforward`; what is installed is "
            "`pushforward-runtime`, which only draws. Uninstall it and install `pushforward`."
        ) from None
