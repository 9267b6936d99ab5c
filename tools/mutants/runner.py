"""Runs the tests that reach a defect, with the defect switched on, until one of them fails."""
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from typing import Dict, List, Optional

import ledger
import reach
import tree

LIMIT_S = 120
START_S = 300


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
        ours.settimeout(START_S + LIMIT_S)
        self.socket, self.lines = ours, ours.makefile("rw")
        self.started = bool(self.lines.readline())

    def ask(self, **request: object) -> Optional[Dict]:
        self.lines.write(json.dumps(request) + "\n")
        self.lines.flush()
        line = self.lines.readline()
        return json.loads(line) if line else None

    def close(self) -> None:
        self.lines.close()
        self.socket.close()
        self.process.wait()


class Runner:
    def __init__(self, state: Dict, book: ledger.Ledger) -> None:
        self.sites, self.book, self.reach = state["sites"], book, reach.Reach()
        self.lock, self.logs = threading.Lock(), os.path.join(tree.BUILD, "logs")
        os.makedirs(self.logs, exist_ok=True)

    def run(self, chosen: List[Dict], jobs: int, until: float) -> None:
        waiting = [site for site in chosen if not self.book.has(tree.key(site))]
        workers = [threading.Thread(target=self.work, args=(waiting, until)) for _ in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def work(self, waiting: List[Dict], until: float) -> None:
        server = None
        while time.time() < until:
            with self.lock:
                if not waiting:
                    break
                site = waiting.pop(0)
            began = time.monotonic()
            result = self.try_cpp(site)
            if result["verdict"] in ("survived", "not reached"):
                at_load = site["number"] in self.reach.load
                if not at_load and server is None and self.names(site, False):
                    server = Server(list(reach.DIRECTORIES))
                result = self.try_python(site, result, None if at_load else server, began)
            result["s"] = round(time.monotonic() - began, 1)
            self.book.add(tree.key(site), site, result)
            place = "%s:%d" % (site["path"], site["line"])
            print("%-9s %-5d" % (result["verdict"], site["number"]), place, site["kind"], result.get("test") or "",
                  flush=True)
        if server:
            server.close()

    def names(self, site: Dict, cpp: bool) -> List[str]:
        return [name for name in self.reach.tests.get(site["number"], []) if reach.is_cpp(name) == cpp]

    def try_cpp(self, site: Dict) -> Dict:
        names = self.names(site, True)
        if not names:
            return {"verdict": "not reached", "ran": 0}
        known = sum(self.reach.seconds[name] for name in names)
        log = os.path.join(self.logs, "%d.cpp.log" % site["number"])
        with open(log, "w") as out:
            try:
                run = subprocess.run([os.path.join(tree.OUT, "anabranch_tests"), "--gtest_fail_fast",
                                      "--gtest_filter=" + ":".join(names)], cwd=tree.TREE, stdout=out, stderr=out,
                                     env=reach.environment(AB_MUTANT=str(site["number"])), timeout=20 + 10 * known)
            except subprocess.TimeoutExpired:
                return {"verdict": "timeout", "test": last_test(log), "ran": len(names)}
        verdict = {0: "survived", 1: "failed"}.get(run.returncode, "crash %d" % -run.returncode)
        return {"verdict": verdict, "test": last_test(log) if run.returncode else None, "ran": len(names)}

    def try_python(self, site: Dict, before: Dict, server: Optional[Server], began: float) -> Dict:
        names = self.names(site, False)
        if site["number"] in self.reach.load and not names:     # only loading reaches it: any test may feel it
            names = list(self.reach.seconds)[::200]
            names = [name for name in names if not reach.is_cpp(name)]
        if not names:
            return before
        number, temp = site["number"], os.path.join(tree.BUILD, "temp", str(site["number"]))
        own = server or Server(sorted({name.split("::")[0] for name in names}), AB_MUTANT=str(number))
        if not own.started:
            return {"verdict": "crash", "test": "import", "ran": 0}
        result = own.ask(number=number, tests=names, known={name: self.reach.seconds[name] for name in names},
                         limit_s=LIMIT_S - (time.monotonic() - began), log=os.path.join(self.logs, "%d.log" % number),
                         temp=temp)
        shutil.rmtree(temp, ignore_errors=True)
        if server is None:
            own.close()
        if result is None:
            raise SystemExit("the server of tests has ended; see %s" % own.log)
        result["ran"] += before["ran"]
        result["of"] = before["ran"] + len(names)
        return result


def last_test(log: str) -> Optional[str]:
    with open(log, errors="replace") as lines:
        runs = [line for line in lines if line.startswith("[ RUN ")]
    return runs[-1].split("]", 1)[1].strip() if runs else None
