import json

import pytest

import scripts.commands.demo as demo
from golden.formats import to_bits
from verification.rtl import footprint


def test_digits_on_golden(trncore):
    outcome = trncore("demo", "digits", "--config", "edge", "--backend", "golden", "--json")
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)
    runs = [(run["dtype"], run["images"]) for run in report["runs"]]
    assert runs == [("bfloat16", 449), ("float8_e4m3", 449)]
    for run in report["runs"]:
        assert run["accuracy"] > 0.94
        assert run["float32_accuracy"] - run["accuracy"] <= demo.ALLOWED_LOSS[run["dtype"]]


def test_text_tells_what_ran(trncore):
    outcome = trncore("demo", "digits", "--backend", "golden")
    assert "network 64-32-10, 449 test images, core small" in outcome.out
    assert "Only one backend ran: golden" in outcome.out


@pytest.fixture
def fake_pysim(monkeypatch):
    """The golden model instead of pysim; returns the list of (backend, images) of the programs that ran,
    and a list of functions that change the results of pysim."""
    run, ran, changes = demo.run_one, [], []

    def fake(image, inputs, backend, **options):
        ran.append((backend, inputs["b"].shape[1]))
        result = run(image, inputs, "golden")
        for change in changes if backend == "pysim" else ():
            change(result.outputs["d"])
        return result

    monkeypatch.setattr(demo, "run_one", fake)
    return ran, changes


def test_pysim_classifies_the_first_images(trncore, fake_pysim):
    ran, _ = fake_pysim
    outcome = trncore("demo", "digits", "--backend", "golden,pysim", "--pysim-images", "40")
    assert outcome.status == 0, outcome.err
    assert ran == [("golden", 449), ("golden", 449), ("pysim", 40), ("pysim", 40)] * 2
    assert "All outputs agree bit for bit: golden, pysim" in outcome.out
    assert [line.split()[2] for line in outcome.out.splitlines()[3:7]] == ["449", "40", "449", "40"]


def test_pysim_gets_at_least_32_images_by_default(trncore, fake_pysim):
    ran, _ = fake_pysim
    assert trncore("demo", "digits", "--backend", "pysim").status == 0
    assert {count for _, count in ran} == {demo.PYSIM_IMAGES}
    assert demo.PYSIM_IMAGES >= 32


def test_disagreement_fails(trncore, fake_pysim):
    _, changes = fake_pysim
    changes.append(lambda d: to_bits(d).__setitem__((0, 0), 0))
    outcome = trncore("demo", "digits", "--backend", "golden,pysim")
    assert outcome.status == 1
    assert "pysim and golden differ in" in outcome.err


def test_a_format_that_loses_too_much_fails(trncore, monkeypatch):
    monkeypatch.setattr(demo, "ALLOWED_LOSS", {"bfloat16": -1})
    outcome = trncore("demo", "digits", "--backend", "golden")
    assert outcome.status == 1
    assert "bfloat16 on golden must lose at most -100.0% against float32" in outcome.err


def test_full_size_on_a_small_core(trncore):
    """Everything but the size; ``trncore demo full`` itself takes minutes."""
    outcome = trncore("demo", "full", "--config", "tiny", "--size", "20", "--json")
    assert outcome.status == 0, outcome.err
    report = json.loads(outcome.out)
    assert report["pe_busy"] == pytest.approx(20**3 / (16 * report["cycles"]))
    assert report["cycles_per_second"] == pytest.approx(report["cycles"] / report["seconds"])
    text = trncore("demo", "full", "--config", "tiny", "--size", "20").out
    assert "20 x 20 x 20, bf16, on tiny (4 x 4)" in text
    assert "equal to golden.matmul" in text


def test_full_size_notices_wrong_bits(trncore, monkeypatch):
    run = demo.run_one

    def wrong(*arguments, **options):
        result = run(*arguments, **options)
        to_bits(result.outputs["d"])[0, 0] ^= 1
        return result
    monkeypatch.setattr(demo, "run_one", wrong)
    outcome = trncore("demo", "full", "--config", "tiny", "--size", "4")
    assert outcome.status == 1
    assert "rtl and golden.matmul differ in 1 of 16 elements" in outcome.err


def test_core_too_large_for_the_machine(trncore, monkeypatch, tmp_path):
    monkeypatch.setattr(footprint, "available_bytes", lambda: 300 << 20)
    monkeypatch.setenv("TRNCORE_CACHE", str(tmp_path))
    # Not a core that this process may have compiled before.
    (tmp_path / "odd.toml").write_text('preset = "tiny"\ncols = 3\n')
    outcome = trncore("demo", "full", "--config", str(tmp_path / "odd.toml"))
    assert outcome.status == 2
    assert outcome.err == ("trncore: config must be small enough for this machine: odd, 4 x 3, takes about "
                           "362 MiB to build, available are 300 MiB\n")
    assert not [path for path in (tmp_path / "rtl").iterdir() if path.is_dir()]
