"""What a PyMC transform says of a variable's support, as one of our constraints."""

from typing import Any

import numpy as np

from pushforward.models import graphs
from pushforward.parameters import Parameter
from pushforward.parameters.specs import limits

_PLAIN = {
    "LogTransform": "positive", "LogExpM1": "positive", "LogOddsTransform": "unit_interval",
    "SimplexTransform": "simplex", "CholeskyCovPacked": "packed_cholesky",
}  # fmt: skip


def parameter(model: Any, name: str, rv: Any, shape: tuple[int, ...], axes: tuple[str, ...]) -> Parameter:
    """Return a free variable as a parameter, or name what stands in the way."""
    transform = model.rvs_to_transforms[rv]
    kind = type(transform).__name__
    if transform is None:
        return Parameter(rv.name, shape, dims=axes)
    if kind in _PLAIN:
        return Parameter(rv.name, shape, _PLAIN[kind], dims=axes)
    if kind in ("Interval", "IntervalTransform"):
        low, high = (_constant(name, rv, bound) for bound in transform.args_fn(*rv.owner.inputs))
        return limits(rv.name, shape, -np.inf if low is None else low, np.inf if high is None else high, axes)
    if kind == "CircularTransform":
        return limits(rv.name, shape, -np.pi, np.pi, axes)
    if kind == "Ordered" and transform.ascending:
        return Parameter(rv.name, shape, "positive_ordered" if transform.positive else "ordered", dims=axes)
    if kind == "ZeroSumTransform" and tuple(transform.zerosum_axes) == (-1,):
        return Parameter(rv.name, shape, "zero_sum", dims=axes)
    raise ValueError(
        f"`model`: variable {rv.name!r} of {name!r} has PyMC's transform {kind}, for which there is no map "
        "here. Write it with another transform (log, interval, simplex, ordered, zero-sum, LKJCholeskyCov), "
        "or use `Target.from_log_density`."
    )


def _constant(name: str, rv: Any, bound: Any) -> Any:
    if bound is None or isinstance(bound, int | float | np.ndarray):
        return bound
    if graphs.is_random(bound):
        raise ValueError(
            f"`model`: the limits of {rv.name!r} of {name!r} depend on other variables. They must be "
            "constants: sample its place within them, for instance from Uniform(0, 1), and compute it with "
            "`pm.Deterministic`."
        )
    return graphs.value(bound)
