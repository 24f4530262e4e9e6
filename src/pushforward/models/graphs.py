"""PyTensor's graphs to JAX functions: the parts of PyMC that a front end needs, without its side effects."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pushforward.optional import need

LARGE = 32  # constants with more numbers than this are data: arguments of the compiled program

Compiled = tuple[Callable[[dict[str, Any], list[Any]], Any], list[Any]]


def import_pymc() -> Any:
    """Import PyMC and its JAX backend; importing the latter would switch JAX to double precision for good."""
    double = jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pymc = need("This front end needs", "pymc", "models", alone=True)
            import pytensor.link.jax.dispatch  # noqa: F401
        finally:
            jax.config.update("jax_enable_x64", double)
    return pymc


def shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """Return the shape of every free variable."""
    found = _interpreted([rv.shape for rv in model.free_RVs])
    return {rv.name: tuple(int(n) for n in shape) for rv, shape in zip(model.free_RVs, found, strict=True)}


def _interpreted(outputs: Any) -> Any:
    """Evaluate graphs by PyTensor's own interpreter: a C compiler would take longer than they do."""
    from pytensor.compile.function import function
    from pytensor.compile.mode import Mode

    return function([], outputs, mode=Mode("py", "fast_compile"))()


def value(variable: Any) -> np.ndarray:
    """Return the value of a graph without inputs."""
    return np.asarray(_interpreted(variable))


def is_random(variable: Any) -> bool:
    """Whether a graph has random variables in it."""
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.op import RandomVariable

    return any(
        node.owner is not None and isinstance(node.owner.op, RandomVariable) for node in ancestors([variable])
    )


def log_density(model: Any) -> Compiled:
    """Return the joint log density of constrained values and data, and the large arrays that it takes."""
    from pymc.logprob.basic import transformed_conditional_logp
    from pymc.logprob.utils import replace_rvs_by_values

    values, everything, nothing = _symbols(model)
    terms: list[Any]
    terms = transformed_conditional_logp(
        list(everything), rvs_to_values=everything, rvs_to_transforms=nothing, jacobian=False
    )
    if model.potentials:
        terms += replace_rvs_by_values(model.potentials, rvs_to_values=everything, rvs_to_transforms=nothing)
    return _compile(list(values.values()), [sum(term.sum() for term in terms)], lambda found: found[0])


def derived(model: Any) -> Compiled | None:
    """Return what computes the model's deterministic variables of constrained values, if it has any."""
    from pymc.logprob.utils import replace_rvs_by_values

    if not model.deterministics:
        return None
    values, everything, nothing = _symbols(model)
    graphs = replace_rvs_by_values(model.deterministics, rvs_to_values=everything, rvs_to_transforms=nothing)
    names = [variable.name for variable in model.deterministics]
    return _compile(list(values.values()), graphs, lambda found: dict(zip(names, found, strict=True)))


def _symbols(model: Any) -> tuple[dict[Any, Any], dict[Any, Any], Any]:
    """Return new symbols for the constrained values, these and the data, and no transforms."""
    values = {rv: rv.type(name=rv.name) for rv in model.free_RVs}
    everything = {**values, **{rv: model.rvs_to_values[rv] for rv in model.observed_RVs}}
    return values, everything, dict.fromkeys(everything)


def _compile(inputs: list[Any], outputs: list[Any], pack: Callable[[Any], Any]) -> Compiled:
    from pytensor.compile.mode import JAX
    from pytensor.graph.fg import FunctionGraph
    from pytensor.link.jax.dispatch.basic import jax_funcify

    outputs, slots, data = _with_data_as_inputs(inputs, outputs)
    graph = FunctionGraph(inputs=[*inputs, *slots], outputs=outputs, clone=True)
    # JAX cannot raise while it computes, so checks of parameters are left out, as PyMC itself does.
    mode: Any = JAX.including("local_remove_check_parameter")
    mode.optimizer.rewrite(graph)
    function: Any = jax_funcify(graph)
    names = [variable.name for variable in inputs]

    def call(values: dict[str, Any], data: list[Any]) -> Any:
        return pack(function(*(values[name] for name in names), *data))

    return call, data


def _with_data_as_inputs(inputs: list[Any], outputs: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Replace shared variables and large constants by inputs, and return these with their values."""
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.basic import Constant
    from pytensor.graph.replace import clone_replace
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor.basic import constant
    from pytensor.tensor.random.type import RandomType

    replacements, slots, data = {}, [], []
    for variable in dict.fromkeys(graph_inputs(outputs)):
        if isinstance(variable, SharedVariable):
            if isinstance(variable.type, RandomType) or variable.default_update is not None:
                raise NotImplementedError("it draws random numbers (a minibatch?) each time it is evaluated.")
            array = np.asarray(variable.get_value(borrow=True))
        elif isinstance(variable, Constant) and isinstance(variable.data, np.ndarray):
            array = variable.data
        else:
            continue
        # What is small or counts something may decide shapes and axes, which must be known to compile.
        if array.size > LARGE and array.dtype.kind == "f":
            slot = variable.type()
            replacements[variable] = slot
            slots.append(slot)
            data.append(jax.device_put(array))
        elif isinstance(variable, SharedVariable):
            replacements[variable] = constant(array)
    return (clone_replace(outputs, replace=replacements) if replacements else outputs), slots, data
