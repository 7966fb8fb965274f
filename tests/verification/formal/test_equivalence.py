from hdl import CoreConfig
from scripts.export.cache import cached_export
from verification.formal.claim import Claim
from verification.formal.equivalence import equivalence_question
from verification.native.unit import exported_unit


def prove(first, second):
    question = equivalence_question(first, second)
    return Claim("name", "property", "fma", lambda: question, 120).run(lambda fraction: None)


def small_unit(latency):
    config = CoreConfig(formats=("float8_e5m2",), pe_latency=latency)
    return exported_unit(cached_export(config, top="fma"))


def test_latencies():
    result = prove(small_unit(3), small_unit(1))
    assert (result["result"], result["depth"]) == ("proven", "4 cycles")


def test_a_fault_is_refuted(faulty):
    unit = faulty(small_unit(2), r"(normalized.round_up  =) .*;", r"\1 1'h0;")
    assert prove(small_unit(1), unit)["result"].startswith("refuted: x=0x")
