"""A sampler as an ONNX graph, for programs that have neither JAX nor Python."""

from pushforward.export.onnx_file import write_onnx as write_onnx
