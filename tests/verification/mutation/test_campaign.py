"""Campaigns: who passes, who fails, and who takes the process down."""

import pytest

from verification.mutation.campaign import CampaignError, Verdict, run_campaign
from verification.mutation.trials import Expectation

MODELS = """
import os

class Model:
    pass

class Trial:
    def __init__(self, name, wrong):
        self.name, self.wrong = name, wrong

    def observe(self, model, mutant):
        if mutant == 3:
            print("does not settle", flush=True)
            os._exit(1)
        if mutant == 4:
            raise TimeoutError("no end")
        return {"bits": mutant in self.wrong, "cycles": 7}, 7

def broken():
    raise OSError("no library")
"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A module that the process of the campaign can import too."""
    (tmp_path / "campaign_models.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    import campaign_models
    return campaign_models


@pytest.mark.parametrize("processes", [1, 2])
def test_verdicts(models, processes):
    trials = [Expectation(models.Trial(name, wrong), {"bits": False, "cycles": 7})
              for name, wrong in (("first", {1}), ("second", {1, 2}))]
    done = []
    verdicts = run_campaign(models.Model, trials, range(1, 6), processes=processes, progress=done.append)
    assert verdicts == {
        1: Verdict("first", "bits differs"), 2: Verdict("second", "bits differs"),
        3: Verdict("", "the simulation ends with 1: does not settle"),
        4: Verdict("first", "TimeoutError: no end"), 5: None}
    assert max(done) == 5


def test_a_broken_model_kills_no_mutant(models):
    with pytest.raises(CampaignError, match="no library"):
        run_campaign(models.broken, [], [1])
