"""A graph under construction: operators are added one by one, and each gives the name of what it computes."""

from typing import Any

import numpy as np

from pushforward.optional import need

OPSET, IR_VERSION = 17, 8
"""Of 2022: old enough for the runtimes that are in use, new enough for every operator needed here."""


class Graph:
    """Nodes and constants, in the order in which they were added."""

    def __init__(self, dtype: np.dtype):
        """Begin an empty graph whose numbers are all of one type."""
        self.dtype = dtype
        self._onnx = need("Exporting stands on", "onnx", "export", "checker", "helper", "numpy_helper")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, value: Any, name: str = "constant", dtype: Any = None) -> str:
        """Add an array or a number, in the type of the graph unless another is given."""
        name = f"{name}_{len(self._constants)}"
        array = np.asarray(value, dtype or self.dtype)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add one node and return the name of its result."""
        output = output or f"{operator.lower()}_{len(self._nodes)}"
        node = self._onnx.helper.make_node(operator, list(inputs), [output], **attributes)
        self._nodes.append(node)
        return output

    def columns(self, x: str, start: int, stop: int) -> str:
        """Add the columns `start, ..., stop - 1` of `x`."""
        return self.add(
            "Slice", x, *(self.constant([place], "place", np.int64) for place in (start, stop, 1))
        )

    def model(self, inputs: dict[str, int], outputs: dict[str, int], words: dict[str, str]) -> bytes:
        """Return the bytes of the model; `inputs` and `outputs` are names with their numbers of columns."""
        helper = self._onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)

        def tables(sizes: dict[str, int]) -> list[Any]:
            return [helper.make_tensor_value_info(name, kind, ["n", size]) for name, size in sizes.items()]

        graph = helper.make_graph(
            self._nodes, "sampler", tables(inputs), tables(outputs), initializer=self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="pushforward",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, words)
        self._onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()
