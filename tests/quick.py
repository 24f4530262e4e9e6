"""Recipes for fits that are not judged by the modes they find: what is dear and beside the point is made small."""

from pushforward import methods

QUICK = {"search.looks": 2**12}
"""Changes of a recipe; most fits here need not look at a million places for modes."""

QUICK_SETS = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]
"""The same for the command line."""


def quick(method="default", **changes):
    """Return a method with a quick recipe, some more fields changed: `fit(key, target, method=quick())`."""
    return methods.make(method, **{**QUICK, **changes})
