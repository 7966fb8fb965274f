from scripts.scale.job import Job
from scripts.scale.parallelism import Plan
from scripts.scale.rtl_runs import project_runs
from scripts.scale.summary import (
    collective_lines,
    contradiction_lines,
    core_line,
    headline,
    items_table,
    operators_table,
    totals_table,
)
from scripts.scale.systems import load_system
from scripts.scale.workloads import load_model

JOB = Job(load_system("trn2-ultraserver"), load_model("llama-3.1-8b"))
OUTCOME = JOB.train(Plan(batch=256, seq_len=8192, tp=8, dp=32), run_tokens=1e12)


def test_the_headline_has_everything_that_matters():
    text = "\n".join(headline(JOB, OUTCOME))
    for word in ("figures vendor", "fits", "tokens/s", "MFU", "USD", "2025-11-30", "ASSUMING 500 W", "days"):
        assert word in text


def test_operators_have_cycles_bound_bytes_and_busy_fraction():
    columns, rows = operators_table(JOB, OUTCOME)
    assert columns[2:] == ["cycles", "bound", "bytes", "array busy"]
    table = {row[0]: row for row in rows}
    assert table["feed-forward up"][3] == "compute"
    assert float(table["feed-forward up"][5][:-1]) > 80
    assert table["residuals"][3] == "memory"
    assert all(0 <= float(row[5][:-1]) <= 100 for row in rows)


def test_algorithms_of_collectives_are_named():
    text = "\n".join(collective_lines(JOB, OUTCOME))
    assert "tensor parallel, 8 ranks" in text
    assert "over NeuronLink-v3" in text


def test_shares_add_up():
    _, rows = items_table(OUTCOME)
    assert abs(sum(float(row[2][:-1]) for row in rows if row[2]) - 100) < 0.5


def test_the_contradiction_is_printed_once_with_both_figures():
    system = load_system("trn2-ultraserver", "brief")
    line, = contradiction_lines(system)
    assert "64 chips of 32 GB are 2048 GB" in line
    assert "96 GB a chip" in line
    assert [row[4] for row in totals_table(system)[1]][:2] == ["agrees", "CONTRADICTION"]


def test_the_core_names_its_run():
    run = project_runs()[0]
    assert run.source in core_line(JOB, run)
    assert f"{run.cycles:,} cycles" in core_line(JOB, run)
    assert "checked on RTL" in core_line(JOB, None)
