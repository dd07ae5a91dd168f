"""
Your own images, one call
=========================

You have images in folders, one folder for each class. ``idarts.fit`` searches for an
architecture, trains its network, compares it with a fixed network and random networks
of the same size, and exports the winner. It ends within the minutes that you give.

On the command line this is ``idarts fit photos --minutes 20 --out runs/mine``.
"""

# %%
# Here we draw some images first: 8 × 8 pixels, bright above or bright below.
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import idarts

folder = Path(tempfile.mkdtemp())
draw = np.random.default_rng(0)
for name in ("above", "below"):
    (folder / "photos" / name).mkdir(parents=True)
    for number in range(100):
        image = draw.integers(0, 150, (8, 8), dtype=np.uint8)
        image[slice(0, 4) if name == "above" else slice(4, 8)] += 100
        Image.fromarray(image).save(folder / "photos" / name / f"{number}.png")

# %%
# ``fit`` looks at the data, measures the machine, and plans. ``on_plan`` shows what it
# decided. This page takes 25 seconds, which is too short for a fair comparison; give
# your images twenty minutes or more.


def show(look, plan):
    print(*look.lines(), sep="\n")
    print(f"{plan.rounds} rounds of search, networks of {plan.channels} channels")
    print(*plan.notes, sep="\n")


result = idarts.fit(folder / "photos", minutes=0.4, out=folder / "run", on_plan=show)
print(result.sentence)
for name, accuracy in result.accuracy.items():
    print(f"{name}: {accuracy:.0%}, {result.parameters[name]:,} parameters")

# %%
# Everything is in the folder. ``report.html`` is the page to look at, ``model`` the
# network to deploy.
print(*sorted(path.name for path in (folder / "run").iterdir()), sep="\n")

# %%
# The network classifies image files, with the resizing and scaling that it was trained
# with.
net = idarts.load(folder / "run")
files = [folder / "photos" / name / "0.png" for name in ("above", "below")]
for prediction in idarts.predict(net, files):
    (best, probability), *_ = prediction.classes
    print(f"{Path(prediction.file).parent.name}: {best}, {probability:.0%}")

# %%
# Next: :doc:`/fit` has the rules of the plan, :doc:`/deploy` what you can do with the
# network.
