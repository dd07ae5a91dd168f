"""
A new estimator, relaxation and space, one file each
====================================================

Your own part is one Python file outside the package. You pass the object from
Python, or type ``package.module:name`` on the command line: ``idarts search
--relaxation sharp_relaxation:sharp``. The files on this page are those that the
package's own tests use.
"""

# %%
# **A relaxation** is a function from α to the weights of the options.
#
# .. literalinclude:: ../../tests/extending/parts/sharp_relaxation.py
#
# **An estimator** solves H x = g. This one keeps a running solution between calls.
#
# .. literalinclude:: ../../tests/extending/parts/running_estimator.py
#
# Both in one search, on the digits:
import tempfile
from pathlib import Path

from chain_space import CHAIN  # tests/extending/parts, as the two others
from running_estimator import Running
from sharp_relaxation import sharp

import idarts
from idarts.arch import as_text
from idarts.data import load

digits = load("digits")
runs = Path(tempfile.mkdtemp())
small = {"rounds": 10, "batch": 32, "inner_steps": 1}
result = idarts.search(
    "nas-bench-201",
    digits.train,
    relaxation=sharp,
    hypergradient={"method": Running},
    out=runs / "parts",
    depth=1,
    channels=4,
    **small,
)
print(as_text(result.architecture))

# %%
# **A space** is one record: what an architecture is, how to draw and change one, its
# supernet and its network.
#
# .. literalinclude:: ../../tests/extending/parts/chain_space.py
result = idarts.search(CHAIN, digits.train, out=runs / "chain", **small)
print(result.architecture.choices)

# %%
# Its network can be counted, trained and exported like any other.
from idarts.spaces import count

print(f"{count(result.architecture, image=8, in_channels=1).params:,} parameters")

# %%
# Next: :doc:`/design` lists every kind of part, and where its example is.
