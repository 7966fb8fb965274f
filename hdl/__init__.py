"""Hardware of the tensor core: parameters (pure Python) and Amaranth components.

``hdl.CoreConfig`` and everything below :mod:`hdl.params` import neither amaranth nor numpy;
``hdl.TensorCore`` is loaded on first use, so that the golden model can read parameters alone.
"""

from hdl.params.core_config import CoreConfig

__all__ = ["CoreConfig", "TensorCore"]


def __getattr__(name):
    if name == "TensorCore":
        from hdl.core import TensorCore
        return TensorCore
    raise AttributeError(f"module 'hdl' has no attribute {name!r}")
