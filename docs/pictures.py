"""Make the pictures of the README: a short search, its report in a browser, and a published cell. `make pictures`."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parent / "images"
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
        run = str(Path(folder, "search"))
        idarts("search", "--preset", "smoke", "--rounds", "60", "--alpha.rate", "0.2", "--none", "false", "--out", run)
        idarts("report", run)
        screenshot(next(Path(run).glob("*.html")), IMAGES / "report.png", 1100, 1110)
        cell = Path(folder, "cell.svg")
        idarts("arch", "draw", "iDARTS", "-o", str(cell))
        page = Path(folder, "cell.html")
        svg = re.sub(r"^.*?(?=<svg)", "", cell.read_text(), flags=re.S)
        page.write_text(f'<body style="margin:12px;background:white"><style>svg{{width:100%;height:auto}}</style>{svg}')
        screenshot(page, IMAGES / "cell.png", 900, 460)


if __name__ == "__main__":
    main()
