"""A plugin of pytest for the build `mutants`: notes which sites each test reaches, or serves tests to a runner.

AB_MUTANT_MAP=FOLDER: each test becomes a line of FOLDER/<process>.jsonl. AB_MUTANT_SERVE=FD: after collecting, requests
{"number", "tests", "known", "limit_s", "log"} are read from the socket; each runs in a fork of this process, with its
defect switched on, up to the first test that fails.
"""
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time

import pytest

PATIENCE_S = 20                         # of a test, plus ten times its seconds without a defect


def library():
    import anabranch._core as core
    return ctypes.CDLL(core.__file__)


class Recorder:
    """Lines {"test", "s", "ok", "hits"}; what happens before the first test is the test "load"."""

    def __init__(self, folder):
        self.folder, self.name = folder, "%d" % os.getpid()
        self.children = os.path.join(folder, "children-" + self.name)
        os.makedirs(self.children)
        os.environ["AB_MUTANT_HITS"] = self.children
        self.buffer, self.shared, self.current, self.failed = None, {}, set(), False

    def take(self):
        if self.buffer is None:
            self.library = library()
            self.buffer = (ctypes.c_ubyte * self.library.ab_mutant_take((ctypes.c_ubyte * 65536)()))()
        self.library.ab_mutant_take(self.buffer)
        hits = {n for n, hit in enumerate(bytes(self.buffer)) if hit}
        for name in os.listdir(self.children):
            path = os.path.join(self.children, name)
            with open(path, "rb") as file:
                hits |= {n for n, hit in enumerate(file.read()) if hit}
            os.unlink(path)
        return hits

    def note(self, test, seconds, ok, hits):
        with open(os.path.join(self.folder, self.name + ".jsonl"), "a") as file:
            file.write(json.dumps({"test": test, "s": round(seconds, 3), "ok": ok, "hits": sorted(hits)}) + "\n")

    def pytest_collection_finish(self, session):
        import anabranch._core  # noqa: F401
        lib = library()
        raw = (ctypes.c_ubyte * 65536)()
        lib.ab_mutant_take(raw)
        self.note("load", 0, True, {n for n, hit in enumerate(bytes(raw)) if hit})

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function":
            yield
            return
        self.current |= self.take()
        yield
        hits = self.take()
        self.shared.setdefault(fixturedef.argname, set()).update(hits)

    def pytest_runtest_logreport(self, report):
        self.failed = self.failed or report.failed

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self.take()
        self.current, self.failed, began = set(), False, time.monotonic()
        yield
        hits = self.current | self.take()
        for name in getattr(item, "fixturenames", ()):
            hits |= self.shared.get(name, set())
        self.note(item.nodeid, time.monotonic() - began, not self.failed, hits)


class Server:
    def __init__(self, fd):
        self.socket = socket.socket(fileno=fd)
        self.first_failure = None

    def pytest_runtest_logreport(self, report):
        if report.failed and self.first_failure is None:
            self.first_failure = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        items, lines = {item.nodeid: item for item in session.items}, self.socket.makefile("rw")
        lines.write(json.dumps({"ready": len(items)}) + "\n")
        lines.flush()
        for line in lines:
            lines.write(json.dumps(self.serve(json.loads(line), items)) + "\n")
            lines.flush()
        return True

    def serve(self, request, items):
        files = {name.split("::")[0] for name in items}
        missing = [name for name in request["tests"] if name.split("::")[0] not in files]
        if missing:                     # their files do not even load
            return {"verdict": "not collected", "test": missing[0], "ran": 0}
        chosen = [items[name] for name in request["tests"] if name in items]
        read_end, write_end = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            self.child(request, chosen, write_end)
        os.close(write_end)
        try:
            return self.watch(request, child, read_end)
        finally:
            os.close(read_end)

    def child(self, request, items, out):
        """Runs the tests one after another, says the name of each before it and "=" at the end; never returns."""
        status = 1
        try:
            os.setsid()
            log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.environ["AB_MUTANT"] = str(request["number"])
            os.environ["PYTEST_DEBUG_TEMPROOT"] = request["temp"]
            os.makedirs(request["temp"], exist_ok=True)
            library().ab_mutant_set(request["number"])
            ends = time.monotonic() + request["limit_s"]
            for item, following in zip(items, items[1:] + [None]):
                if time.monotonic() > ends or self.first_failure is not None:
                    break
                os.write(out, (item.nodeid + "\n").encode())
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            os.write(out, b"=\n")
            status = 0 if self.first_failure is None else 1
        finally:
            sys.stdout.flush()
            os._exit(status)

    def watch(self, request, child, names):
        """The verdict on the fork: {"verdict", "test", "ran"}."""
        last, ran, pending, since = None, 0, b"", time.monotonic()
        verdict = None
        while verdict is None:
            if select.select([names], [], [], 0.2)[0]:
                data = os.read(names, 65536)
                *whole, pending = (pending + data).split(b"\n")
                for name in whole:
                    if name == b"=":
                        verdict = self.ended(child)
                    else:
                        last, ran, since = name.decode(), ran + 1, time.monotonic()
                if data:
                    continue
            if verdict is None and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                verdict = self.ended(child)
            elif verdict is None and time.monotonic() - since > PATIENCE_S + 10 * request["known"].get(last, 0):
                verdict = "timeout"
        end_group(child)
        if verdict == "timeout":
            os.waitpid(child, 0)
        return {"verdict": verdict, "test": last if verdict != "survived" else None, "ran": ran}

    @staticmethod
    def ended(child):
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            return "crash %d" % os.WTERMSIG(status)
        return "failed" if os.WEXITSTATUS(status) else "survived"


def end_group(child):
    """Ends the fork's own session, with programs that its tests left running."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass


def pytest_configure(config):
    if os.environ.get("AB_MUTANT_SERVE"):
        config.pluginmanager.register(Server(int(os.environ["AB_MUTANT_SERVE"])))
    works = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if os.environ.get("AB_MUTANT_MAP") and works:
        config.pluginmanager.register(Recorder(os.environ["AB_MUTANT_MAP"]))
