import json

import pytest

from hdl import CoreConfig
from scripts.scale.rtl_runs import project_runs, read_run


def result(**changes):
    table = {"m": 64, "k": 64, "n": 64, "config": "small", "dtype": ["bfloat16", "bfloat16"],
             "backends": {"golden": {"cycles": 1, "pe_busy": 1.0}, "rtl": {"cycles": 4992, "pe_busy": 0.82}}}
    return {**table, **changes}


def test_the_rtl_counts_before_other_backends(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(result()))
    run = read_run(path)
    assert (run.backend, run.cycles, run.config.name) == ("rtl", 4992, "small")
    assert run.correction == run.cycles / run.predicted


def test_output_of_bench_busy_is_read(tmp_path):
    path = tmp_path / "b.json"
    rows = [{"config": "small", "backend": "rtl", "M": m, "K": m, "N": m, "cycles": m**3, "PE busy": 0.5}
            for m in (16, 64)]
    path.write_text(json.dumps({"busy": rows}))
    assert read_run(path).m == 64


def test_a_custom_core_needs_its_configuration(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(result(config="mine")))
    with pytest.raises(ValueError, match="--core-config"):
        read_run(path)
    assert read_run(path, CoreConfig(rows=5, cols=3)).config.rows == 5


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"backends": {}}', '{"busy": [{}]}'])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="--from-rtl must be what"):
        read_run(path)


def test_the_project_has_runs_of_its_own():
    assert len(project_runs()) >= 4
