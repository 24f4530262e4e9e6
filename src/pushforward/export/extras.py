"""The one place that imports `onnx`, so that who lacks it is told how to get it."""

from typing import Any


def import_onnx() -> Any:
    """Return the `onnx` package, or say which extra brings it."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            "Exporting stands on `onnx`, which is not installed. "
            "Install it with `pip install 'pushforward[export]'`."
        ) from error
    return onnx
