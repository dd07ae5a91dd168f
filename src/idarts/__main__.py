"""`python -m idarts` is `idarts`, also under `torchrun`."""

import os
import sys

from idarts.cli import main

if os.environ.get("RANK", "0") != "0" and "TORCHELASTIC_RUN_ID" in os.environ:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (open until the end; only the first rank prints)
sys.exit(main())
