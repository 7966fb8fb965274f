"""The list of faults is complete, and a judge notices what is wrong."""

from dataclasses import replace

import numpy as np
import pytest

from golden.machine import run
from hdl import CoreConfig
from hdl.params.isa import FaultCode
from scripts.export.layout import port_layouts
from scripts.export.manifest import engine_numbers, make_manifest
from verification.checks import Check, failures
from verification.env.job import Fault, Outcome
from verification.faults import fault_cases, fault_checks

CONFIGS = [CoreConfig.preset("tiny"), CoreConfig(rows=1, cols=1, dma_engines=1), CoreConfig(rows=2, cols=3)]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.rows}x{config.cols}")
def test_every_code_is_provoked(config):
    cases = fault_cases(config, engine_numbers(config))
    assert {case.code for case in cases} == {code.name for code in FaultCode if code}
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.rows}x{config.cols}")
def test_the_golden_model_has_the_same_faults(config):
    engines = engine_numbers(config)
    for case in fault_cases(config, engines):
        inputs = {t.name: np.zeros(t.shape) for t in case.image.inputs}
        fault = run(case.image, inputs).fault
        if case.modelled:
            assert (fault.code.name, fault.engine) == (case.code, engines.get(case.engine, 255)), case.name
        else:
            assert fault is None, case.name


@pytest.fixture(scope="module")
def checks():
    config = CONFIGS[0]
    manifest = make_manifest(config, top="core", module="core", modules=[], ports=[], layouts={},
                             latencies={}, files=[])
    return fault_checks(config, manifest)


def outcomes(check):
    """What a right core would give for a check."""
    keywords = check.judge.keywords
    case, model = keywords["case"], keywords["model"]
    fault = Fault(case.code, keywords["engines"].get(case.engine, 255),
                  *((model.pc, model.info, model.address) if model else (0, 0, 0)))
    empty = Outcome(cycles=1, core_cycles=1, counters={}, semaphores=[], fault=None, waiting={}, dump=[],
                    trace=[])
    return replace(empty, fault=fault), replace(empty, dump=[keywords["expected"].tobytes()])


def test_judge(checks):
    for check in checks:
        faulty, recovered = outcomes(check)
        assert check.judge((faulty, recovered)) == []
        dump = bytearray(recovered.dump[0])
        dump[0] ^= 1
        differs = check.judge((faulty, replace(recovered, dump=[bytes(dump)])))
        assert differs == ["the result after recovery differs"]
        assert len(check.judge((replace(faulty, fault=replace(faulty.fault, engine=7)), recovered))) >= 1
        assert len(check.judge((faulty, replace(recovered, fault=faulty.fault)))) == 1
        if check.judge.keywords["model"]:
            assert len(check.judge((replace(faulty, fault=replace(faulty.fault, info=77)), recovered))) == 1


def test_failures():
    pair = [Check("a", None, lambda result: [f"{result} is odd"] if result % 2 else []), Check("b", None, list)]
    assert failures(pair, [(True, 2), (True, [])]) == []
    assert failures(pair, [(True, 3), (False, ValueError("broken"))]) == ["a: 3 is odd", "b: ValueError: broken"]


def test_layouts_of_the_core_name_the_trace():
    from hdl.core import TensorCore
    core = TensorCore(CONFIGS[0])
    core._MustUse__used = True
    assert set(port_layouts(core)["trace"]["element"]["fields"]) == {"dispatch", "complete", "pc"}
