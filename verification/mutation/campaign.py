"""Runs trials on mutants of a core in processes of their own, which a mutant may bring down."""

import json
import pickle
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MARK", "CampaignError", "Verdict", "run_campaign"]

_TAIL = 500
MARK = "verdict "
"""Before the lines that the worker means."""


class CampaignError(RuntimeError):
    """The process that runs the trials does not start; the message holds what it printed."""


@dataclass(frozen=True)
class Verdict:
    """The first trial that a mutant failed, and how."""

    trial: str
    reason: str


def run_campaign(make_model, expectations, mutants, *, processes=1, progress=None):
    """Run every mutant through trials until it fails one.

    Parameters
    ----------
    make_model : callable
        Returns what trials are run on, such as an :class:`~verification.rtl.model.RtlModel` of a core with the
        port :data:`~verification.mutation.mutants.SELECT`; picklable.
    expectations : list of Expectation
        In running order: best those first that are short and that many mutants fail.
    mutants : iterable of int
    processes : int
        Among which the mutants are shared.
    progress : callable or None
        Called with the number of mutants done.

    Returns
    -------
    dict
        Mutant -> :class:`Verdict`, or ``None``: it passed every trial.

    Raises
    ------
    CampaignError
        The process breaks down before the first mutant.
    """
    mutants, done = list(mutants), [0] * processes

    def run(share):
        def count(number):
            done[share] = number
            if progress:
                progress(sum(done))
        return _run_share(make_model, expectations, mutants[share::processes], count)
    verdicts = {}
    with ThreadPoolExecutor(processes) as pool:
        for found in pool.map(run, range(processes)):
            verdicts |= found
    return verdicts


def _run_share(make_model, expectations, left, progress):
    """Run the mutants ``left`` in one process after the other."""
    verdicts, total = {}, len(left)
    with tempfile.TemporaryDirectory(prefix="trncore-mutation-") as scratch:
        request = Path(scratch) / "request.pickle"
        while left:
            request.write_bytes(pickle.dumps((make_model, expectations, left)))
            ready, message = False, ""
            with subprocess.Popen([sys.executable, "-m", "verification.mutation.worker", str(request)],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
                for line in process.stdout:
                    if line.startswith(MARK) and ready:
                        mutant, trial, reason = json.loads(line.removeprefix(MARK))
                        verdicts[mutant] = trial and Verdict(trial, reason)
                        left.remove(mutant)
                        progress(total - len(left))
                    elif line.startswith(MARK):
                        ready = True
                    else:
                        message = (message + line)[-_TAIL:]   # Verilator has something to say.
            if not ready:
                raise CampaignError(f"The worker ended with {process.returncode}: {message}")
            if process.returncode:
                # Verilator ends the process when logic does not settle.
                verdicts[left.pop(0)] = Verdict("", f"the simulation ends with {process.returncode}: "
                                                    f"{message.strip()}")
    return verdicts
