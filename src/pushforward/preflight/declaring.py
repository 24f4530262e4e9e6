"""What to say of a support that is not all of R^dim, and the declaration to write for it."""

import numpy as np

from pushforward.base import NamedTarget, Target
from pushforward.preflight.support import Support


def told(target: Target, support: Support) -> tuple[str, str]:
    """Return what the support is, and what to write; no remedy where no declaration describes it."""
    what, remedy = [], ""
    if support.bounded:
        what.append("ends at " + ", ".join(_bounds(target, support)))
        remedy = declaration(target, support.low, support.high)
    names = coordinate_names(target)
    what += [f"has a gap in {names[i]} between {low:.6g} and {high:.6g}" for i, low, high in support.gaps]
    if len(support.others):
        shape, instead = _shape(target, support)
        what.append(shape)
        remedy = instead or remedy
    if not remedy and support.gaps:
        i, low, high = support.gaps[0]
        remedy = (
            "The two sides are modes, and `check` compares their masses. If only one is meant, write "
            f"`bounds` that end at {names[i]} = {low:.6g} or begin at {high:.6g}."
        )
    return " and ".join(what), remedy


def coordinate_names(target: Target) -> list[str]:
    """Return what to call each coordinate: by the model's own names where it has some."""
    record = target.parameters
    return record.coordinate_names() if record else [f"x[{place}]" for place in range(target.dim)]


def _bounds(target: Target, support: Support) -> list[str]:
    names, found = coordinate_names(target), []
    for side, limits in (("low", support.low), ("high", support.high)):
        sign = ">" if side == "low" else "<"
        places = np.flatnonzero(np.isfinite(limits))
        if len(places) == target.dim > 3 and len(set(limits)) == 1:
            found.append(f"every coordinate {sign} {limits[0]:.6g}")
        else:
            found += [f"{names[i]} {sign} {limits[i]:.6g}" for i in places[:4]]
    return found


def declaration(target: Target, lows: np.ndarray, highs: np.ndarray) -> str:
    """Return the line to write, in place of the one that made the target."""
    if not isinstance(target, NamedTarget):
        sides = ", ".join(_side(limits) for limits in (lows, highs))
        return f"Write `Target.from_log_density(fn, dim={target.dim}, bounds=({sides}))`."
    words, start = [], 0
    for item in target.record.items:
        part = slice(start, start + item.size)
        start += item.size
        low, high = lows[part], highs[part]
        if item.kind == "real" and (np.isfinite(low).any() or np.isfinite(high).any()):
            words.append(f'"{item.name}": ("interval", {_side(low)}, {_side(high)})')
    if not words:
        return "Its constraints leave room where the density is zero: make them tighter."
    return f"Write `constraints={{{', '.join(words)}}}`."


def _side(limits: np.ndarray) -> str:
    numbers = ["None" if np.isinf(each) else f"{each:.9g}" for each in limits]
    return numbers[0] if len(set(numbers)) == 1 else f"[{', '.join(numbers)}]"


def _shape(target: Target, support: Support) -> tuple[str, str]:
    """Return what edges are like that are no bounds of coordinates, and the remedy if there is one."""
    x, names = support.others, coordinate_names(target)
    dim, size = x.shape[1], np.ptp(x, axis=0).max() + 1e-300
    positive = bool((support.low == 0.0).all())
    if positive and np.ptp(x.sum(axis=1)) < 1e-3 * size and np.isclose(x[0].sum(), 1.0, rtol=1e-3):
        return "at a sum of 1, like all but the last part of a simplex", (
            f"Write `Target.from_log_density(lambda y: fn(y[:-1]), example=jnp.ones({dim + 1}), "
            'constraints="simplex")`.'
        )
    near = dim > 1 and np.min(np.abs(np.diff(x, axis=1)), axis=1).max() < 1e-3 * size
    if near and (np.diff(support.inside, axis=1) > 0).all():
        return "ends where neighbouring coordinates are equal: they increase", (
            f'Write `Target.from_log_density(fn, example=jnp.zeros({dim}), constraints="ordered")`.'
        )
    middle = x.mean(axis=0)
    _, sizes, axes = np.linalg.svd(x - middle, full_matrices=False)
    if len(x) > dim > 1 and sizes[-1] < 1e-3 * sizes[0]:
        normal = axes[-1] / axes[-1][np.argmax(np.abs(axes[-1]))]
        large = np.flatnonzero(np.abs(normal) > 1e-2)[:4]
        plane = " ".join(f"{normal[i]:+.3g} {names[i]}" for i in large)
        return f"ends at a slanted edge, {plane} = {normal @ middle:.4g}", (
            "Make that sum one of the coordinates, and give it a bound."
        )
    # |x|^2 = 2 c x + r^2 - |c|^2 on a sphere.
    table = np.column_stack([2.0 * x, np.ones(len(x))])
    solved, *_ = np.linalg.lstsq(table, (x**2).sum(axis=1), rcond=None)
    radius = np.sqrt(max(solved[-1] + solved[:-1] @ solved[:-1], 0.0))
    apart = np.abs(np.linalg.norm(x - solved[:-1], axis=1) - radius)
    hole = "has a hole" if support.holed else "ends"
    if len(x) > dim + 2 and apart.max() < 1e-2 * radius:
        place = ", ".join(f"{round(each, 3) + 0.0:g}" for each in solved[:4][: min(dim, 4)])
        more = ", ..." if dim > 4 else ""
        way = f"{hole} at a radius of {radius:.4g} around ({place}{more})"
    else:
        place = np.round(x[0][:5], 4).tolist()
        way = f"{hole} at edges that are no bounds of coordinates, such as at x = {place}"
    return (
        way,
        "No declaration describes such an edge: other coordinates may; else hold the draws against `check`.",
    )
