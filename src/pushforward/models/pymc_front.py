"""PyMC models as targets: PyMC's log density of constrained values, under the same maps as everything else.

PyMC has transforms of its own. They say what a variable's support is, but the maps used are ours, so that the
same model written for PyMC, for NumPyro or by hand has the same free coordinates, and draws are named and
constrained without PyMC.
"""

import warnings
from typing import Any

import equinox as eqx
import jax
import numpy as np

from pushforward.base import NamedTarget
from pushforward.models import graphs, supports
from pushforward.models.extras import check_observed, first_line, listed
from pushforward.parameters import Parameters


def from_pymc(model: Any) -> NamedTarget:
    """Make a target of a PyMC model.

        with pm.Model() as model:
            ...
        target = pf.from_pymc(model)

    The log density is PyMC's own, compiled by its JAX backend; names of axes and their labels (`dims`,
    `coords`) go with the draws. Large arrays of data are passed to the compiled program, not built into it.

    **Arguments:**

    - `model`: a `pymc.Model`, with its data. Free variables must be continuous, and their limits constants.
    """
    pymc = graphs.import_pymc()
    if not isinstance(model, pymc.Model):
        raise TypeError(
            f"`model` must be a pymc.Model; got {type(model).__name__}. A NumPyro model goes to "
            "`from_numpyro`."
        )
    name = model.name or "pymc_model"
    _check(model, name)
    with warnings.catch_warnings():
        # PyMC and PyTensor speak of precision and of checks that JAX leaves out; both are as meant.
        warnings.simplefilter("ignore")
        try:
            record = _parameters(model, name)
            log_density, data = graphs.log_density(model)
            derive = graphs.derived(model)
        except NotImplementedError as error:
            raise ValueError(
                f"`model`: {name!r} uses something that PyMC cannot turn into JAX: {first_line(error)}"
            ) from error
        except ValueError as error:
            if str(error).startswith("`model`"):
                raise
            raise ValueError(
                f"`model`: PyMC cannot build the log density of {name!r}: {first_line(error)} Check that "
                "data and parameters have shapes that go together; `model.debug()` says more."
            ) from error
    target = NamedTarget(
        fn=eqx.Partial(_call, log_density, data),
        record=record,
        name=name,
        derive=None if derive is None else eqx.Partial(_call, *derive),
    )
    try:
        eqx.filter_eval_shape(target.log_density, jax.ShapeDtypeStruct((record.dim,), np.float32))
    except Exception as error:
        raise ValueError(
            f"`model`: the log density of {name!r} cannot be compiled by JAX: {first_line(error)}"
        ) from error
    return target


def _call(fn: Any, data: list[Any], values: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        # PyMC's graphs ask for double precision; JAX warns at each place where it does not give it.
        warnings.simplefilter("ignore")
        return fn(values, data)


def _check(model: Any, name: str) -> None:
    discrete = [rv.name for rv in model.free_RVs if rv.dtype.startswith(("int", "uint", "bool"))]
    if discrete:
        raise ValueError(
            f"`model`: variable(s) {listed(discrete)} of {name!r} are discrete and not observed; a "
            "pushforward sampler needs a density with a gradient. Sum them out (`pm.Mixture`, "
            "`pymc_extras.marginalize`), or observe them."
        )
    if not model.free_RVs:
        raise ValueError(
            f"`model`: {name!r} has no free variable, hence nothing to sample. Its variables are "
            f"{listed(model.named_vars) or 'none'}."
        )
    for rv in model.observed_RVs:
        data = model.rvs_to_values[rv]
        if getattr(data, "data", None) is not None:
            check_observed(name, rv.name, data.data)


def _parameters(model: Any, name: str) -> Parameters:
    shapes = graphs.shapes(model)
    items = []
    for rv in model.free_RVs:
        # Names for the axes that have none; the model may name fewer than there are.
        shape = shapes[rv.name]
        dims = (*(model.named_vars_to_dims.get(rv.name) or ()), *(None for _ in shape))
        axes = [dim or f"{rv.name}_dim_{axis}" for axis, dim in enumerate(dims[: len(shape)])]
        items.append(supports.parameter(model, name, rv, shape, tuple(map(str, axes))))
    used = {axis for item in items for axis in item.dims}
    coords = tuple(
        (axis, tuple(_label(label) for label in labels))
        for axis, labels in model.coords.items()
        if axis in used and labels is not None
    )
    return Parameters(tuple(items), coords)


def _label(label: Any) -> str | int | float:
    label = label.item() if isinstance(label, np.generic) else label
    return label if type(label) in (str, int, float) else str(label)
