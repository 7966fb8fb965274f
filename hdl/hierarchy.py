"""How a repeated component becomes a submodule (simulation) or one shared module (export).

Amaranth writes one Verilog module per instance.  Components that occur many times are therefore
placed with :func:`place`: in simulation the component is an ordinary submodule; under an export
platform, which has an ``instance`` method, it becomes an ``Instance`` of a module that is written
once for all components with the same ``module_name``.
"""

from amaranth.hdl import ResetInserter

__all__ = ["place"]


def place(m, platform, name, component, *, reset=None):
    """Add ``component`` to ``m`` as submodule ``name``.

    The caller goes on using the component's own port attributes in both cases.  A component that
    places others must be reset through ``reset``: a ``ResetInserter`` around it does not reach
    inside an ``Instance``.

    Parameters
    ----------
    m : amaranth.hdl.Module
    platform : object or None
        What ``elaborate`` received.
    name : str
        Instance name.
    component : amaranth.lib.wiring.Component
        Must have a ``module_name`` property: two components with the same name must elaborate to
        the same logic.
    reset : Value or None
        Resets the component, as the reset of its domain does.
    """
    instance = getattr(platform, "instance", None)
    if instance is not None:
        m.submodules[name] = instance(component, reset=reset)
    elif reset is not None:
        m.submodules[name] = ResetInserter(reset)(component)
    else:
        m.submodules[name] = component
