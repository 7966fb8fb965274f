import pytest

import golden
from hdl import CoreConfig
from scripts import acceptance

TINY = CoreConfig.preset("tiny")


def test_the_sample_covers_every_pair_and_hurts():
    backends = ("golden", "pysim", "icarus", "verilator")
    gemms = acceptance.covering_gemms(TINY, backends, 0)
    seen, total = acceptance.pairs_covered(TINY, backends, gemms)
    assert seen == total > 400
    assert {gemm.backend for gemm in gemms} == set(backends)
    assert {gemm.m for gemm in gemms} == {1, 3, 4, 5, 9}
    assert {gemm.stall for gemm in gemms} == {0.0, 0.1, 0.5, 0.9}
    assert {dtype for gemm in gemms for dtype in gemm.dtype} == set(TINY.formats)
    assert any(gemm.dtype[0] != gemm.dtype[1] for gemm in gemms)
    acceptance.check_data(TINY, gemms)


def test_everything_is_the_full_product():
    factors = acceptance.gemm_factors(TINY, ["golden"])
    gemms = acceptance.every_gemm(TINY, ["golden"], 0)
    assert len(gemms) == 5**3 * len(factors["dtype"]) * 4
    seen, total = acceptance.pairs_covered(TINY, ["golden"], gemms)
    assert seen == total


def test_random_shapes_stay_below_the_limit():
    gemms = acceptance.random_gemms(TINY, "golden", 50, 7, 1)
    assert {gemm.m for gemm in gemms} == set(range(1, 8))
    assert len({gemm.seed for gemm in gemms}) == 50


def test_tame_data_is_refused():
    gemm = acceptance.Gemm("golden", 1, 1, 1, ("bfloat16", "bfloat16"), "float32", "MK", 0.0, 0)
    with pytest.raises(AssertionError, match="must hold"):
        acceptance.check_data(TINY, [gemm])


def test_products_on_golden_pass_and_a_wrong_bit_fails(monkeypatch):
    gemms = acceptance.random_gemms(TINY, "golden", 4, 9, 2)
    assert acceptance.run_gemms(TINY, gemms, "golden").failures == []
    right = golden.matmul

    def wrong(*arguments, **options):
        d = right(*arguments, **options)
        golden.to_bits(d)[0, 0] ^= 1
        return d

    monkeypatch.setattr(golden, "matmul", wrong)
    outcome = acceptance.run_gemms(TINY, gemms, "golden")
    assert len(outcome.failures) == outcome.count == 4
    assert all(": 1 of " in line and "elements differ" in line for line in outcome.failures)


def test_an_error_of_one_program_is_its_failure_only(monkeypatch):
    import golden.machine
    gemms = acceptance.random_gemms(TINY, "golden", 3, 5, 3)
    run, calls = golden.machine.run, []

    def second_fails(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("broken")
        return run(*arguments, **options)

    monkeypatch.setattr(golden.machine, "run", second_fails)
    failures = acceptance.run_gemms(TINY, gemms, "golden").failures
    assert len(failures) == 1
    assert failures[0].endswith(": RuntimeError: broken")


def test_the_expected_bits_on_a_simulated_unit():
    outcome = acceptance.run_unit(TINY, "evacuate", "pysim")
    assert outcome.failures == []
    assert outcome.count == 750


def test_operands_in_both_layouts_are_the_same_product():
    gemm = acceptance.Gemm("golden", 5, 6, 7, ("bfloat16", "bfloat16"), "float32", "KM", 0.0, 4)
    assert acceptance.run_gemms(TINY, [gemm], "golden").failures == []
