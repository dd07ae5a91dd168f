"""A logger of one's own: a list of what it receives, as JSON lines beside the run."""

import json

from idarts.engine.loggers import Logger


class ListLogger(Logger):
    def start(self, run):
        self.file = run.path.parent / "list.jsonl"
        self.write("start", {"kind": run.kind, "settings": run.settings, "first": run.first, "id": run.id})
        return run.id or "the first"

    def round(self, entry):
        self.write("round", entry)

    def result(self, result):
        self.write("result", result)

    def end(self, outcome):
        self.write("end", outcome)

    def write(self, what, value):
        with self.file.open("a") as file:
            file.write(json.dumps([what, value]) + "\n")
