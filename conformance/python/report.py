"""A pytest plugin: writes each test's outcome to $RESULTS, one JSON object per line, and runs only the tests named in $ONLY."""

import json
import os

import pytest

RANK = {"skipped": 0, "passed": 1, "failed": 2}
outcomes = {}


def note(test, outcome, message=""):
    if test not in outcomes or RANK[outcome] > RANK[outcomes[test][0]]:
        outcomes[test] = (outcome, message)


def last_line(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return text.strip()[:2000]


def pytest_collection_modifyitems(config, items):
    if "ONLY" in os.environ:
        with open(os.environ["ONLY"], encoding="utf-8") as file:
            only = set(file.read().splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in only])
        items[:] = [item for item in items if item.nodeid in only]


def pytest_collectreport(report):
    if report.failed:
        note(report.nodeid, "failed", last_line(report))


# It runs after all other hooks, because some change the outcome of expected failures.
@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        note(report.nodeid, report.outcome, last_line(report) if report.failed else "")


def pytest_sessionfinish():
    with open(os.environ["RESULTS"], "w", encoding="utf-8") as file:
        for test, (outcome, message) in outcomes.items():
            print(json.dumps({"test": test, "outcome": outcome, "message": message}), file=file)
        print(json.dumps({"end": len(outcomes)}), file=file)
