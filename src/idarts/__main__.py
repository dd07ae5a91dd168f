"""`python -m idarts` is `idarts`, also under `torchrun`."""

import os
import sys

from idarts.cli import main

if os.environ.get("RANK", "0") != "0" and "TORCHELASTIC_RUN_ID" in os.environ:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the end) # what a job has to say, its first rank says
sys.exit(main())
