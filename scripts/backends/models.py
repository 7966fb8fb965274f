"""Simulation models of the core and its parts: made once, each runs many environments or programs."""

from functools import lru_cache, partial

from amaranth.lib.wiring import Flow

from scripts.backends.pysim import PysimModel
from scripts.export import cached_export, make_top
from scripts.export.design import component_latencies
from scripts.export.layout import port_layouts
from scripts.export.manifest import make_manifest
from scripts.export.platform import signature_ports
from verification.env.harness import job_harness
from verification.rtl.model import RtlModel
from verification.runner import build, run_environments

__all__ = ["MODELS", "CompiledModel", "DirectModel", "ElaboratedModel", "find_model"]

KEPT_MODELS = 4


class ElaboratedModel:
    """A component in Amaranth's simulator.

    Parameters
    ----------
    config : hdl.CoreConfig
    top : str
        One of :data:`scripts.export.tops.TOPS`.

    Attributes
    ----------
    manifest : dict
        As for an export.
    """

    def __init__(self, config, top):
        component = make_top(config, top)
        ports = [(name, "input" if flow is Flow.In else "output", len(value))
                 for name, flow, value in signature_ports(component)]
        self.manifest = make_manifest(config, top=top, module=top, modules=[], ports=ports,
                                      layouts=port_layouts(component),
                                      latencies=component_latencies(component), files=[])
        self._model = PysimModel(component)

    def run(self, factories, *, progress=None):
        """Run environments one after the other, each from reset.

        Parameters
        ----------
        factories : list of callable
            Each makes an environment.
        progress : callable or None
            Called now and then with (environments done, cycles of the present one).

        Returns
        -------
        list of (bool, object)
            For each ``(True, result)`` or ``(False, exception)``.
        """
        results = []
        for done, factory in enumerate(factories):
            def report(cycles, done=done):
                progress(done, cycles)
            try:
                results.append((True, self._model.run(factory(), progress=progress and report)))
            except Exception as error:   # Whatever it is belongs to this environment; the next one runs.
                results.append((False, error))
        return results


    def run_jobs(self, jobs, *, progress=None):
        """As :meth:`run`, for programs (:class:`~verification.env.job.Job`) on the core."""
        return self.run([partial(job_harness, self.manifest, job) for job in jobs], progress=progress)


class CompiledModel:
    """An exported component in a Verilog simulator under cocotb; otherwise as :class:`ElaboratedModel`.

    Raises
    ------
    SimulatorNotFound, BuildError
    """

    def __init__(self, config, top, simulator):
        self._build = build(cached_export(config, top=top), simulator)
        self.manifest = self._build.manifest

    def run(self, factories, *, progress=None):
        """As :meth:`ElaboratedModel.run`; one simulator process runs them all."""
        return run_environments(self._build, factories, progress=progress)

    def prepare(self):
        """Make everything that running programs needs; it is made."""

    run_jobs = ElaboratedModel.run_jobs


class DirectModel:
    """The exported core in a compiled library (:mod:`verification.rtl`): runs programs only.

    Raises
    ------
    ValueError
        ``top`` is a part of the core.
    SimulatorNotFound, BuildError
    """

    def __init__(self, config, top):
        if top != "core":
            raise ValueError(f"Backend rtl simulates the core, not {top!r}")
        self._directory = cached_export(config)
        self._models = {}

    def _model(self, waves):
        if waves not in self._models:
            self._models[waves] = RtlModel(self._directory, waves=waves)
        return self._models[waves]

    @property
    def manifest(self):
        return self._model(False).manifest

    def prepare(self):
        """As :meth:`CompiledModel.prepare`."""
        self._model(False)

    def run_jobs(self, jobs, *, progress=None):
        """As :meth:`ElaboratedModel.run_jobs`."""
        results = []
        for done, job in enumerate(jobs):
            def report(cycles, done=done):
                progress(done, cycles)
            try:
                model = self._model(job.waves is not None)
                results.append((True, model.run(job, progress=progress and report)))
            except Exception as error:   # Whatever it is belongs to this program; the next one runs.
                results.append((False, error))
        return results


MODELS = {
    "pysim": ElaboratedModel,
    "icarus": lambda config, top: CompiledModel(config, top, "icarus"),
    "verilator": lambda config, top: CompiledModel(config, top, "verilator"),
    "rtl": DirectModel,
}
"""Functions that make a model from a configuration and a top, by backend."""


@lru_cache(maxsize=KEPT_MODELS)
def find_model(config, top, backend):
    """Return the model of ``top`` for a backend, made now or before."""
    return MODELS[backend](config, top)
