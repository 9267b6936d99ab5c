"""Runs the tests that reach a defect, with the defect switched on, until one of them fails."""
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from typing import Dict, List, Optional

import outcomes
import reach
import tree

LIMIT_S = 120
START_S = 100
END_S = 20
PATIENCE_S = 20                         # of a C++ test, plus ten times its seconds without a defect


class Server:
    """A process of pytest that has collected its tests and runs some of them in a fork for each request."""

    def __init__(self, paths: List[str], **more: str) -> None:
        ours, theirs = socket.socketpair()
        self.log = os.path.join(tree.BUILD, "server-%d.log" % theirs.fileno())
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                reach.pytest_command(paths, "--capture=no", "-p", "no:xdist"), cwd=tree.TREE, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, pass_fds=[theirs.fileno()],
                env=reach.environment(AB_MUTANT_SERVE=str(theirs.fileno()), **more))
        theirs.close()
        ours.settimeout(START_S)
        self.socket, self.lines = ours, ours.makefile("rw")
        self.started = self.line() is not None
        ours.settimeout(START_S + LIMIT_S)

    def line(self) -> Optional[Dict]:
        """None when the process has ended or hangs."""
        try:
            text = self.lines.readline()
        except OSError:
            return None
        return json.loads(text) if text else None

    def ask(self, **request: object) -> Optional[Dict]:
        self.lines.write(json.dumps(request) + "\n")
        self.lines.flush()
        return self.line()

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.lines.close()
        self.socket.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Runner:
    def __init__(self, state: Dict, book: outcomes.Ledger, limit_s: float = LIMIT_S) -> None:
        self.sites, self.book, self.reach = state["sites"], book, reach.Reach(state["sites"])
        self.limit_s = limit_s
        self.lock, self.logs = threading.Lock(), os.path.join(tree.BUILD, "logs")
        os.makedirs(self.logs, exist_ok=True)
        # Its own copy: new tests may be compiled while it runs.
        self.tests = os.path.join(tree.BUILD, "anabranch_tests-%d" % os.getpid())
        shutil.copy2(os.path.join(tree.OUT, "anabranch_tests"), self.tests)

    def run(self, chosen: List[Dict], jobs: int, until: float) -> None:
        waiting = [site for site in chosen if not self.book.has(tree.key(site))]
        workers = [threading.Thread(target=self.work, args=(waiting, until)) for _ in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        os.unlink(self.tests)

    def work(self, waiting: List[Dict], until: float) -> None:
        server = None
        while time.time() < until:
            with self.lock:
                if not waiting:
                    break
                site = waiting.pop(0)
            ends = time.monotonic() + self.limit_s
            result = self.try_cpp(site)
            if self.names(site, False) and not found(result):
                server = server or Server(list(reach.DIRECTORIES))
                result = self.try_python(site, result, self.names(site, False), server, ends)
            if site["number"] in self.reach.load and not found(result):
                result = self.try_loading(site, result, ends)
            result["s"] = round(self.limit_s - (ends - time.monotonic()), 1)
            self.book.add(tree.key(site), site, result)
            place = "%s:%d" % (site["path"], site["line"])
            print("%-9s %-5d" % (result["verdict"], site["number"]), place, site["kind"], result.get("test") or "",
                  "%d/%d" % (result["ran"], result["of"]), "%.0fs" % result["s"], flush=True)
        if server:
            server.close()

    def names(self, site: Dict, cpp: bool) -> List[str]:
        return [name for name in self.reach.tests.get(site["number"], []) if reach.is_cpp(name) == cpp]

    def try_cpp(self, site: Dict) -> Dict:
        names = self.names(site, True)
        if not names:
            return {"verdict": "not reached", "ran": 0, "of": 0}
        log = os.path.join(self.logs, "%d.cpp.log" % site["number"])
        with open(log, "w") as out:
            run = subprocess.Popen([self.tests, "--gtest_fail_fast", "--gtest_filter=" + ":".join(names)],
                                   cwd=tree.TREE, stdout=out, stderr=out,
                                   env=reach.environment(AB_MUTANT=str(site["number"])))
        verdict = self.watch(run, log)
        ran = len(names) if verdict == "survived" else 1
        return {"verdict": verdict, "test": None if verdict == "survived" else last_test(log), "ran": ran,
                "of": len(names)}

    def watch(self, run: subprocess.Popen, log: str) -> str:
        """Ends it when a test lasts much longer than it does without a defect."""
        name, since = None, time.monotonic()
        while True:
            try:
                code = run.wait(0.1)
                return {0: "survived", 1: "failed"}.get(code, "crash %d" % -code)
            except subprocess.TimeoutExpired:
                if last_test(log) != name:
                    name, since = last_test(log), time.monotonic()
                if time.monotonic() - since > PATIENCE_S + 10 * self.reach.seconds.get(name or "", 0):
                    run.kill()
                    run.wait()
                    return "timeout"

    def try_python(self, site: Dict, before: Dict, names: List[str], server: Server, ends: float) -> Dict:
        """In a fork of a process that has loaded everything without a defect."""
        result = self.ask(site, names, server, ends)
        if result is None or result["verdict"] == "not collected":
            raise SystemExit("the server of tests has ended, or not loaded its tests; see %s" % server.log)
        return added(before, result, len(names))

    def try_loading(self, site: Dict, before: Dict, ends: float) -> Dict:
        """Also while the package and the tests are loaded."""
        names = self.reach.near(site)
        server = Server(sorted({name.split("::")[0] for name in names}), AB_MUTANT=str(site["number"]))
        try:
            if not server.started:
                return added(before, {"verdict": "crash", "test": "import", "ran": 0}, len(names))
            result = self.ask(site, names, server, max(ends, time.monotonic() + self.limit_s / 2))
            return added(before, result or {"verdict": "crash", "test": "import", "ran": 0}, len(names))
        finally:
            server.close()

    def ask(self, site: Dict, names: List[str], server: Server, ends: float) -> Optional[Dict]:
        """Until a test fails that fails by itself, too: others fail on a busy machine, or because of tests before."""
        ran = 0
        while True:
            result = self.ask_once(site, names, server, ends - time.monotonic())
            if result is None or not found(result) or result["test"] not in names:
                return result and {**result, "ran": ran + result["ran"]}
            ran += result["ran"]
            alone = self.ask_once(site, [result["test"]], server, LIMIT_S)
            if alone is None or found(alone):
                return {**result, "ran": ran}
            names = names[names.index(result["test"]) + 1:]

    def ask_once(self, site: Dict, names: List[str], server: Server, limit_s: float) -> Optional[Dict]:
        temp = os.path.join(tree.BUILD, "temp", str(site["number"]))
        try:
            return server.ask(number=site["number"], tests=names, limit_s=limit_s, temp=temp,
                              known={name: self.reach.seconds[name] for name in names},
                              log=os.path.join(self.logs, "%d.log" % site["number"]))
        finally:
            shutil.rmtree(temp, ignore_errors=True)


def found(result: Dict) -> bool:
    return result["verdict"] not in ("survived", "not reached")


def added(before: Dict, result: Dict, of: int) -> Dict:
    return {**result, "ran": before["ran"] + result["ran"], "of": before["of"] + of}


def last_test(log: str) -> Optional[str]:
    """The first that has failed, else the one under way; what follows a failure is passed over."""
    with open(log, errors="replace") as lines:
        marks = [line.split("]", 1) for line in lines if line.startswith(("[ RUN ", "[  FAILED "))]
    failed = [text for mark, text in marks if "FAILED" in mark]
    found = failed[:1] or [text for _, text in marks][-1:]
    return found[0].split()[0] if found else None
