"""`python -m idarts` is `idarts`."""

import sys

from idarts.cli import main

sys.exit(main())
