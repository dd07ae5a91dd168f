"""A page as a parser sees it."""

from html.parser import HTMLParser

from idarts.pages import write_report
from idarts.pages.template import script

VOID = {"meta", "img", "br", "link", "input"}


class Tree(HTMLParser):
    """Fails on a tag that is closed wrongly; gathers what a reader sees, all tags with attributes, and scripts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.scripts = [], [], "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" in self.open:
            self.scripts.append(data)
        elif "style" not in self.open:
            self.text += data


def runs_only_our_script(tree):
    """Whether the page has the script of all pages, and nothing else that a browser would run."""
    handlers = [name for _, attributes in tree.tags for name in attributes if name.startswith("on")]
    return tree.scripts == [script()] and [tag for tag, _ in tree.tags].count("script") == 1 and not handlers


def read(run, **more):
    return Tree(write_report(run, **more).read_text(encoding="utf-8"))
