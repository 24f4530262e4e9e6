"""Every built-in target by name: what the command line lists, fits and studies."""

from collections.abc import Callable, Iterator, Mapping

import jax

from pushforward import extensions
from pushforward.base import Target
from pushforward.checks import check_choice
from pushforward.targets.funnels import funnel, funnel_nd
from pushforward.targets.gaussians import Gaussian, correlated_gaussian, gaussian
from pushforward.targets.mixture import gmm40, mog2
from pushforward.targets.warped import banana, rosenbrock, squiggle

Build = Callable[[], Target]


def _correlated_gaussian(dim: int = 10) -> Gaussian:
    """Return a Gaussian of condition number 100, turned at random; `dim=1000` is the study's largest."""
    return correlated_gaussian(jax.random.key(0), dim)


_OURS: dict[str, Build] = {
    "gaussian": gaussian,
    "mog2": mog2,
    "rosenbrock": rosenbrock,
    "funnel": funnel,
    "squiggle": squiggle,
    "banana": banana,
    # Harder: more modes, more dimensions.
    "correlated_gaussian": _correlated_gaussian,
    "gmm40": gmm40,
    "funnel_nd": funnel_nd,
}


class Registry(Mapping[str, Build]):
    """The library's targets, then those of installed packages, which are imported when asked for."""

    def __getitem__(self, name: str) -> Build:
        return _OURS[name] if name in _OURS else extensions.extensions(extensions.TARGETS)[name].load()

    def __contains__(self, name: object) -> bool:
        return name in _OURS or name in extensions.extensions(extensions.TARGETS)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*_OURS, *extensions.extensions(extensions.TARGETS))))

    def __len__(self) -> int:
        return len(tuple(iter(self)))


TARGETS = Registry()  # name to a constructor without arguments


def get(name: str) -> Target:
    """Build the target of that name, or say which name is nearest, or what to install."""
    if words := extensions.remedy(extensions.TARGETS, name):
        raise ValueError(f"`name`: {words}")
    return TARGETS[check_choice(name, "name", TARGETS)]()
