"""A pytest plugin for CI: each skip that `allowed_skips.toml` does not list fails the run, and is named in one line.

`.ci/run` loads it with PYTEST_PLUGINS. On a laptop without Chromium, say, skips stay skips.
"""

import os
import tomllib
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("allowed_skips.toml")
ALLOWED = tomllib.loads(LIST.read_text())["allowed"]


def _allowed(reason: str) -> bool:
    return any(entry["reason"] in reason and entry.get("unless_set") not in os.environ for entry in ALLOWED)


def _unlisted(config: pytest.Config) -> list[str]:
    """Only the process that prints the summary has these reports: the workers of pytest-xdist have no terminal."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    skipped = terminal.stats.get("skipped", []) if terminal else []
    reasons = [(report.nodeid, report.longrepr[2].removeprefix("Skipped: ")) for report in skipped]
    return [f"{test} skipped, but could run here: {reason}" for test, reason in reasons if not _allowed(reason)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _unlisted(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := _unlisted(config):
        terminalreporter.section(f"skips that {LIST.parent.name}/{LIST.name} does not list", red=True, bold=True)
        for line in lines:
            terminalreporter.write_line(line, red=True)
