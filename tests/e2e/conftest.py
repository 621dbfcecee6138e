"""pytest's frame for the end-to-end tests: own Kafka and Redis where none are given, and the closing line."""
import os
import shutil
import signal
import tempfile

import pytest

from support import BIN, Server

COUNTS = {"passed": 0, "failed": 0}


def pytest_configure(config):
    # told to stop: as with Ctrl-C, whatever a test has started ends with it
    def stop(number, frame):
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, stop)


@pytest.fixture(scope="session", autouse=True)
def real_parts():
    """SLUICE_KAFKA_BROKERS and SLUICE_REDIS_URL, started here where they are not given."""
    if not (BIN / "sluice").exists():
        pytest.exit("%s/sluice is not there: build first, or set SLUICE_BIN" % BIN, 2)
    folder, own = tempfile.mkdtemp(prefix="sluice-e2e-parts-"), []
    try:
        for kind, name in (("kafka", "SLUICE_KAFKA_BROKERS"), ("redis", "SLUICE_REDIS_URL")):
            if not os.environ.get(name):
                own.append(Server(kind, folder))
                os.environ[name] = own[-1].start()
        yield
    finally:
        for server in own:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def pytest_runtest_logreport(report):
    if report.when == "call":
        COUNTS["passed" if report.passed else "failed"] += 1
    elif report.failed:
        COUNTS["failed"] += 1


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    if not config.option.collectonly and not hasattr(config, "workerinput"):
        print("%d passed, %d failed" % (COUNTS["passed"], COUNTS["failed"]))
