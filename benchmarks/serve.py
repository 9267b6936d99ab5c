"""`anabranch serve` under many connections: requests/s, p50 and p99 of an answer, errors, memory of the server.

    python benchmarks/serve.py [--connections 200] [--seconds 60] [--rows 1] [--model ctr] [--kind json] [--workers 1]

The server and the client run in separate processes, on the same cores. Each connection is kept and asks again as soon as
it has its answer, so p99 is that of a server that is always busy. Every answer is compared with the predictor's. Memory is
read each second; growth is from a fifth of the time on. Ends with 1 when an answer was an error, missing or another one.
"""
import argparse
import asyncio
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import predict

FORMS = {"json": "application/json", "npz": "application/x-npz"}
INPUTS = 16  # different requests


@contextlib.contextmanager
def server(folder, options):
    """(process id, address) of a server; it has to end with 0 when it is told to."""
    child = subprocess.Popen([sys.executable, "-m", "anabranch", "serve", folder, "--port", "0", *options],
                             stdout=subprocess.PIPE, universal_newlines=True)
    try:
        found = re.search(r"http://\S+", child.stdout.readline())
        if not found:
            raise SystemExit("the server has not started")
        yield child.pid, found.group()
        child.send_signal(signal.SIGTERM)
        if child.wait(60) != 0:
            raise SystemExit("the server ended with %d" % child.returncode)
    finally:
        child.kill()
        child.communicate()


def resident_mb(pid):
    with open("/proc/%d/status" % pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def requests_of(folder, model, rows, kind):
    """[(body, output that must come)]."""
    import anabranch
    predictor, made = anabranch.Predictor(folder), []
    for seed in range(INPUTS):
        given = {name: np.roll(value, seed, axis=-1) for name, value in predict.inputs_of(model, rows).items()}
        if kind == "json":
            body = json.dumps({"inputs": {name: value.tolist() for name, value in given.items()}}).encode()
        else:
            file = io.BytesIO()
            np.savez(file, **given)
            body = file.getvalue()
        made.append((body, predictor.run(given)[0].copy()))
    return made


def value_of(body, kind):
    if kind == "json":
        return np.array(next(iter(json.loads(body)["outputs"].values())), "float32")
    with np.load(io.BytesIO(body)) as file:
        return file[file.files[0]]


async def connection(session, url, number, asked, kind, end, taken, errors):
    headers = {"Content-Type": FORMS[kind], "Accept": FORMS[kind]}
    at = number
    while time.monotonic() < end:
        body, expected = asked[at % len(asked)]
        at += 1
        begun = time.perf_counter()
        try:
            async with session.post(url + "/predict", data=body, headers=headers) as answer:
                found = await answer.read()
                taken.append(time.perf_counter() - begun)
                if answer.status != 200:
                    errors.append("%d: %s" % (answer.status, found[:200]))
                elif not np.allclose(value_of(found, kind), expected, rtol=1e-4, atol=1e-6):
                    errors.append("another answer")
        except Exception as e:
            errors.append("%s: %s" % (type(e).__name__, e))


async def load(url, pid, asked, args):
    """(seconds of each answer, errors, MB of the server in each second)."""
    import aiohttp
    taken, errors, memory, end = [], [], [], time.monotonic() + args.seconds
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        tasks = [asyncio.ensure_future(connection(session, url, k, asked, args.kind, end, taken, errors))
                 for k in range(args.connections)]
        while time.monotonic() < end:
            memory.append(resident_mb(pid))
            await asyncio.sleep(1)
        await asyncio.gather(*tasks)
        memory.append(resident_mb(pid))
    return taken, errors, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--model", choices=("ctr", "fashion"), default="ctr")
    parser.add_argument("--kind", choices=sorted(FORMS), default="json")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        predict.save_models(directory)
        folder = os.path.join(directory, args.model)
        asked = requests_of(folder, args.model, args.rows, args.kind)
        with server(folder, ["--workers", str(args.workers)]) as (pid, url):
            begun = time.monotonic()
            taken, errors, memory = asyncio.run(load(url, pid, asked, args))
            seconds = time.monotonic() - begun
    p50, p99, most = (1e3 * float(v) for v in (*np.percentile(taken, [50, 99]), max(taken))) if taken else (0, 0, 0)
    settled = memory[len(memory) // 5]
    print(json.dumps({"model": args.model, "connections": args.connections, "rows": args.rows, "kind": args.kind,
                      "seconds": round(seconds, 1), "requests_s": round(len(taken) / seconds, 1), "p50_ms": round(p50, 2),
                      "p99_ms": round(p99, 2), "most_ms": round(most, 2), "errors": len(errors),
                      "memory_mb": round(memory[-1], 1), "growth_mb": round(memory[-1] - settled, 1)}))
    for text in sorted(set(errors))[:5]:
        print(text, file=sys.stderr)
    return int(bool(errors) or not taken)


if __name__ == "__main__":
    sys.exit(main())
