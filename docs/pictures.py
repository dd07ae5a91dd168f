"""Make the pictures of the README: the pages of the demo's fit and of a search, and a cell. `make pictures`.

The search needs CIFAR-10 and the table of NAS-Bench-201 (docs/data.md), and some minutes.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parent / "images"
DEMO = Path(__file__).parents[1] / "examples" / "fit_textures.py"
BROWSER = "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"


def idarts(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "idarts", *words], check=True)


def screenshot(page: Path, picture: Path, width: int, height: int) -> None:
    size = f"--window-size={width},{height}"
    command = [*BROWSER, size, f"--screenshot={picture}", page.resolve().as_uri()]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    Image.open(picture).convert("RGB").quantize(64).save(picture, optimize=True)  # flat colours: a third of the size


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        fit, run = Path(folder, "fit"), Path(folder, "search")
        subprocess.run([sys.executable, str(DEMO), "--out", str(fit)], check=True)
        screenshot(fit / "report.html", IMAGES / "fit.png", 1100, 820)
        idarts("search", "--preset", "cpu", "--seed", "1", "--out", str(run))
        idarts("report", str(run))
        screenshot(run / "report.html", IMAGES / "report.png", 1100, 1110)
        cell = Path(folder, "cell.svg")
        idarts("arch", "draw", "iDARTS", "-o", str(cell))
        page = Path(folder, "cell.html")
        svg = re.sub(r"^.*?(?=<svg)", "", cell.read_text(), flags=re.S)
        page.write_text(f'<body style="margin:12px;background:white"><style>svg{{width:100%;height:auto}}</style>{svg}')
        screenshot(page, IMAGES / "cell.png", 900, 460)


if __name__ == "__main__":
    main()
