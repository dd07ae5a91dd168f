"""Check every link of the built site: local files and anchors exist, and nothing is loaded from elsewhere.

python docs/check_links.py docs/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("img", "script", "iframe", "source") and "src" in given:
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload") and "href" in given:
            self.loads.append(given["href"])


def problems(site: Path) -> list[str]:
    pages = {file.resolve(): Page(file) for file in sorted(site.rglob("*.html"))}
    wrong = []
    for file, page in pages.items():
        where = file.relative_to(site.resolve())
        for address in (*page.links, *page.loads):
            parts = urlsplit(address)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                if address in page.loads:
                    wrong.append(f"{where}: loads {address} from another server")
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{where}: {address} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{where}: {address} has no such anchor")
    return wrong if pages else [f"{site} has no pages"]


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or "all links lead somewhere")
    sys.exit(bool(found))
