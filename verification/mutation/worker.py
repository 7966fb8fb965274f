"""The process of :func:`verification.mutation.campaign.run_campaign`: prints a line for every mutant."""

import json
import pickle
import sys
from pathlib import Path

from verification.mutation.campaign import MARK
from verification.mutation.trials import first_difference


def main(request):
    """Print after the mark [mutant, name of the trial that it failed or null, why or null]."""
    make_model, expectations, mutants = pickle.loads(Path(request).read_bytes())
    model = make_model()
    print(MARK, flush=True)   # What goes wrong from now on is a mutant's fault.
    for mutant in mutants:
        verdict = None, None
        for expected in expectations:
            reason = first_difference(expected, model, mutant)
            if reason is not None:
                verdict = expected.trial.name, reason
                break
        print(MARK + json.dumps([mutant, *verdict]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
