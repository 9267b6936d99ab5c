"""Records the nets of this folder: record_nets.py [NAME...], with an interpreter in which `import paddle.fluid` works.

Every net runs in its own process, on one thread. --fluid PACKAGE --check compares with the records instead.
"""
import argparse
import importlib
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import harness  # noqa: E402
import measures  # noqa: E402


def load_nets():
    for name in sorted(os.listdir(HERE)):
        if name.startswith("nets_") and name.endswith(".py"):
            importlib.import_module(name[:-3])
    return harness.NETS


def path_of(name):
    return os.path.join(HERE, "records", name + ".json")


def write(name, record):
    """One line for each parameter and each row."""
    lines = ['{"parameters": [']
    lines.append(",\n".join(json.dumps(p) for p in record["parameters"]))
    lines.append('], "rows": {')
    lines.append(",\n".join("%s: %s" % (json.dumps(k), json.dumps(v, sort_keys=True))
                            for k, v in record["rows"].items()))
    lines.append("}}\n")
    with open(path_of(name), "w") as f:
        f.write("\n".join(lines))


def read(name):
    with open(path_of(name)) as f:
        return json.load(f)


def one(name, package, check):
    fluid = importlib.import_module(package)
    trained = harness.Trained(load_nets()[name], fluid)
    if not check:
        record = measures.recorded(trained)
        losses = [v["values"][0] for k, v in record["rows"].items() if k.endswith("fetch 0") and v["values"]]
        fetched = max(v["moved"] for k, v in record["rows"].items() if "fetch" in k)
        loose = sum(v["moved"] > 1e-2 for v in record["rows"].values())
        print("%s: %d parameters, first fetches %s; fetches move by %.1e, %d of %d rows by more than 1 %%" % (
            name, len(record["parameters"]), losses, fetched, loose, len(record["rows"])))
        return write(name, record)
    bad = measures.complaints(trained.net, read(name), trained)
    print("%s: %s" % (name, "; ".join(bad[:5]) or "equal"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--fluid", default="paddle.fluid")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    names = args.names or sorted(load_nets())
    if args.here:
        return one(names[0], args.fluid, args.check)
    environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_DEBUG_CPU_TYPE="5", PYTHONDONTWRITEBYTECODE="1")
    failed = 0
    for name in names:
        command = [sys.executable, os.path.abspath(__file__), name, "--here", "--fluid", args.fluid]
        failed |= subprocess.call(command + ["--check"] * args.check, env=environment)
    return failed


if __name__ == "__main__":
    sys.exit(main())
