"""How cocotb builds and runs a design on each simulator."""

from cocotb_tools import runner as cocotb_runner

__all__ = ["RUNNERS", "Icarus", "LeanVerilator"]


class Icarus(cocotb_runner.Icarus):
    """Icarus as cocotb runs it."""

    def __init__(self, simulator):
        super().__init__()


class LeanVerilator(cocotb_runner.Verilator):
    """Verilator without ``--public-flat-rw``, which slows every signal down: a control file names
    the few that are visible."""

    def __init__(self, simulator):
        self._simulator = simulator
        super().__init__()

    def _set_env_build(self):
        super()._set_env_build()
        self.env.update(self._simulator.environment)

    def _simulator_in_path_build_only(self):
        self.executable = self._simulator.command

    def _build_command(self):
        compile_command, make_command = super()._build_command()
        compile_command.remove("--public-flat-rw")
        return [compile_command, make_command]


RUNNERS = {"icarus": Icarus, "verilator": LeanVerilator}
"""Runner classes by simulator name; each takes a :class:`verification.simulators.Simulator`."""
