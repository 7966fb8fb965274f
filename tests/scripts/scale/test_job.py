import json

import pytest

from scripts.scale.job import Job
from scripts.scale.parallelism import Plan
from scripts.scale.systems import load_system
from scripts.scale.workloads import load_model

JOB = Job(load_system("trn1.32xlarge"), load_model("llama-2-7b"))
PLAN = Plan(batch=256, seq_len=4096, tp=8, dp=4)


def test_rates_follow_from_the_time():
    outcome = JOB.train(PLAN, run_tokens=2e12)
    assert outcome.tokens_per_second == pytest.approx(256 * 4096 / outcome.seconds)
    per_hour = outcome.tokens_per_second * 3600 / 1e6
    assert outcome.usd_per_million_tokens == pytest.approx(21.50 / per_hour)
    assert outcome.usd_per_run == pytest.approx(outcome.usd_per_million_tokens * 2e6)
    assert outcome.mfu < outcome.mfu_array < 1
    assert outcome.extra["mfu_causal"] < outcome.mfu


def test_prices_and_power_are_inputs():
    job = Job(JOB.system, JOB.model, usd_per_chip_hour=1.0, watts_per_chip=100.0)
    outcome = job.train(PLAN)
    hours = 1e6 / outcome.tokens_per_second / 3600
    assert outcome.usd_per_million_tokens == pytest.approx(16 * hours)
    assert outcome.kwh_per_million_tokens == pytest.approx(16 * 0.1 * 1.5 * hours)


def test_results_are_json():
    for outcome in (JOB.train(PLAN), JOB.prefill(Plan(4, 1024, 32)), JOB.decode(Plan(4, 1, 32), 1024)):
        table = json.loads(json.dumps(outcome.as_dict()))
        assert table["kind"] == outcome.kind
        assert sum(table["items"].values()) == pytest.approx(table["seconds"])


def test_speculation_is_compared_with_none():
    draft = load_model("llama-2-7b")
    outcome = Job(JOB.system, load_model("llama-2-70b")).decode(Plan(1, 1, 32), 1024, draft=draft, acceptance=0.8)
    assert outcome.seconds <= outcome.extra["without_speculation"]
    assert 1 < outcome.extra["tokens_per_check"] < 5
