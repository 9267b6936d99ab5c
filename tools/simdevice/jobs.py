"""The jobs: a job is one part of WHAT on a number of devices with one seed."""
import os
import re
import subprocess
import sys
import threading
import time
from typing import Dict, List, NamedTuple, Optional, Union

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOGS = os.path.join(ROOT, "build", "simdevice")
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from forks import Done, Forks  # noqa: E402

SCENARIOS = ("nets", "shapes", "blocks", "values", "in_flight", "workers", "wrong")
#: ops: cases of all operators, by graphs, each program on the last device. With one device each seed takes all cases;
#: with more, whose others then stand idle, a tenth, the one of its last digit: ten seeds take all. cpp: devices' own
#: tests and those of the engine's queues, which go through seeds and numbers of devices by themselves: once.
WHAT = ("cpp", *SCENARIOS, "golden", "ops")
LONG = ("ops",)
LIMIT_S = 900
ORDERS = {3: "latest", 6: "starved", 9: "starved"}     # by last digit of the seed
ONE_LANE = (5, 8)                       # last digits of seeds for which a row of a kernel has one lane


class Job(NamedTuple):
    devices: int
    seed: int
    what: str


class Result(NamedTuple):
    job: Job
    passed: int
    failed: int
    seconds: float
    digest: Optional[str]               # of the numbers that came out
    log: str


def plan(devices: List[int], seeds: List[int], what: List[str]) -> List[Job]:
    """The longest first, so that processes end together."""
    jobs = []
    for part in reversed(WHAT):
        if part not in what:
            continue
        if part == "cpp":
            jobs.append(Job(devices[0], seeds[0], part))
        else:
            jobs += [Job(count, seed, part) for count in sorted(devices, reverse=True) for seed in seeds]
    return jobs


def flags_of(job: Job) -> Dict[str, Union[int, str]]:
    return {"simdevice_devices": job.devices, "simdevice_seed": job.seed,
            "simdevice_order": ORDERS.get(job.seed % 10, "random"), "simdevice_lanes": lanes_of(job)}


def lanes_of(job: Job) -> int:
    return int(job.seed % 10 not in ONE_LANE)


def alike(job: Job) -> tuple:
    """Jobs of which this is the same compute the same bits: sums by many lanes have a different order than by one."""
    return job.devices, job.what, lanes_of(job)


def scenario(forks: Forks, job: Job) -> Done:
    text = "import scenarios, training\nprint('digest', training.digest(scenarios.SCENARIOS[%r](%d)))"
    return forks.run(text % (job.what, job.devices), flags_of(job), LIMIT_S)


def program(job: Job, command: List[str], where: str, **more: str) -> Done:
    flags = {"FLAGS_" + name: str(value) for name, value in flags_of(job).items()}
    flags.update(more, FLAGS_device_plugin="simdevice", PYTHONPATH=os.path.join(ROOT, "python"))
    environment = dict(os.environ, **flags)
    began = time.monotonic()
    try:
        done = subprocess.run(command, cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, errors="replace", timeout=LIMIT_S)
        return Done(done.returncode, done.stdout, time.monotonic() - began)
    except subprocess.TimeoutExpired as e:
        return Done(124, str(e.stdout), time.monotonic() - began)


def golden(job: Job) -> Done:
    folder = os.path.join(ROOT, "tests", "golden")
    said, status, seconds = "", 0, 0.0
    for group in ("engine", "ctr"):
        done = program(job, [sys.executable, "golden.py", "check", "--fluid", "fluid_on_device", "--group", group,
                             "--behaviour", "default", "--expected", "expected_failures.json"], folder)
        said, status, seconds = said + done.said, status or done.status, seconds + done.seconds
    return Done(status, said, seconds)


def ops(job: Job) -> Done:
    return program(job, [sys.executable, "-m", "pytest", "-q", "-p", "on_devices", "-p", "no:cacheprovider", "-k",
                         "test_output or test_float32_gradient", "test_ops.py"], os.path.join(ROOT, "tests", "ops"),
                   ANABRANCH_TEST_PLACE="device", ANABRANCH_TEST_RUNS="3", FLAGS_device_graphs="1",
                   ANABRANCH_TEST_SHARE="%d/10" % (job.seed % 10) if job.devices > 1 else "")


def cpp(job: Job) -> Done:
    said, status, seconds = "", 0, 0.0
    for binary, tests in (("plugins/simdevice/simdevice_tests", "*"), ("anabranch_tests", "QueuePlan.*:DeviceMemory*")):
        path = os.path.join(ROOT, "build", "release", *binary.split("/"))
        if not os.path.exists(path):
            return Done(1, "%s was not built" % path, 0)
        done = program(job, [path, "--gtest_brief=1", "--gtest_filter=" + tests], ROOT)
        said, status, seconds = said + done.said, status or done.status, seconds + done.seconds
    return Done(status, said, seconds)


#: The programs' counts of passed and failed tests: pytest, golden.py, gtest.
COUNTS = ((r"(\d+) passed", r"(\d+) failed"), (r"(\d+) of \d+ passed", None),
          (r"\[  PASSED  \] (\d+)", r"(\d+) FAILED TEST"))


def counts(done: Done) -> tuple:
    """(passed, failed). A part that does not count is one."""
    for passed, failed in reversed(COUNTS):
        found = re.findall(passed, done.said)
        if not found:
            continue
        good = sum(map(int, found))
        bad = sum(map(int, re.findall(failed, done.said))) if failed else len(re.findall("^FAIL ", done.said, re.M))
        return good, bad or int(done.status != 0)
    return (1, 0) if done.status == 0 else (0, 1)


def perform(forks: Forks, job: Job) -> Result:
    single = {"golden": golden, "ops": ops, "cpp": cpp}.get(job.what)
    done = single(job) if single else scenario(forks, job)
    log = os.path.join(LOGS, "%d-%d-%s.log" % job)
    with open(log, "w") as file:
        file.write(done.said)
    passed, failed = counts(done)
    digest = re.search(r"^digest (\w+)$", done.said, re.M)
    return Result(job, passed, failed, done.seconds, digest.group(1) if digest else None, log)


def run(todo: List[Job], count: int) -> List[Result]:
    """Runs in `count` processes. A job whose bits differ from those of the other seeds has failed."""
    os.makedirs(LOGS, exist_ok=True)
    waiting, results, lock = list(todo), [], threading.Lock()

    def work() -> None:
        forks = Forks()
        try:
            while True:
                with lock:
                    if not waiting:
                        return
                    job = waiting.pop(0)
                result = perform(forks, job)
                with lock:
                    results.append(result)
                    if result.failed:
                        print("FAILED %s on %d devices, seed %d: %s" % (job.what, job.devices, job.seed, result.log),
                              flush=True)
        finally:
            forks.close()

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [judged(result, results) for result in results]


def judged(result: Result, all_results: List[Result]) -> Result:
    """Bits must be those that most seeds have, of those with the same number of lanes."""
    digests = [r.digest for r in all_results if alike(r.job) == alike(result.job) and r.digest]
    if not result.digest or result.digest == max(sorted(set(digests)), key=digests.count):
        return result
    with open(result.log, "a") as file:
        file.write("other bits than of other seeds: %s\n" % result.digest)
    return result._replace(passed=0, failed=1)
