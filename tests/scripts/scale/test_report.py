import re

from scripts.scale.job import Job
from scripts.scale.parallelism import Plan
from scripts.scale.report import write_pictures, write_report
from scripts.scale.systems import load_system
from scripts.scale.workloads import load_model

JOB = Job(load_system("trn2-ultraserver", "brief"), load_model("llama-3.1-8b"))
OUTCOME = JOB.train(Plan(batch=256, seq_len=8192, tp=8, dp=32))


def test_a_report_needs_nothing_else(tmp_path):
    path = tmp_path / "r.html"
    write_report(path, JOB, OUTCOME)
    text = path.read_text()
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "http" not in re.sub(r"base64,[^\"]*", "", text)
    assert text.count("data:image/png;base64,") == 4
    assert "CONTRADICTION" in text
    assert "cycles, PE busy" in text


def test_pictures_are_png(tmp_path):
    paths = write_pictures(tmp_path / "new", JOB, OUTCOME)
    assert {p.name for p in paths} == {"roofline.png", "scaling.png", "memory.png", "time.png"}
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in paths)
