"""A page as a parser sees it."""

from html.parser import HTMLParser

from idarts.pages import write_report

VOID = {"meta", "img", "br", "link", "input"}


class Tree(HTMLParser):
    """Fails on a tag that is closed wrongly; gathers what a reader sees, and every tag with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
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
        self.text += "" if "style" in self.open else data


def read(run, **more):
    return Tree(write_report(run, **more).read_text(encoding="utf-8"))
