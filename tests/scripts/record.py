"""Records what PaddlePaddle 1.8.5 prints when it runs the scripts: ``record.py PYTHON [NAME ...]``, PYTHON having it.

``record.py PYTHON random`` runs each script of random/ 25 times and records how their last losses spread, and its last
loss when no optimizer updates anything.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import archives
import masked

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = 25
UNTRAINED = """import runpy, sys
import paddle.fluid as fluid
fluid.optimizer.Optimizer.minimize = lambda self, loss, *rest, **named: ([], [])
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def run(python, root, script, *before):
    environment = dict(os.environ, GLOG_v="0", CPU_NUM="1", OMP_NUM_THREADS="1", OLD_SCRIPTS_ARCHIVES=root)
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, *before, script], cwd=folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, timeout=120)
    if done.returncode != 0:
        raise SystemExit("%s: %s" % (script, done.stderr))
    return done.stdout


def last_loss(text):
    return float(text.split("final loss")[1].split()[0])


def main(python, *names):
    with tempfile.TemporaryDirectory() as root:
        archives.write(root)
        if names == ("random",):
            scripts = sorted(glob.glob(os.path.join(HERE, "random", "*.py")))
            found = {}
            for script in scripts:
                found[os.path.basename(script)[:-3]] = {
                    "losses": sorted(last_loss(run(python, root, script)) for _ in range(RUNS)),
                    "untrained": min(last_loss(run(python, root, script, "-c", UNTRAINED)) for _ in range(5))}
            with open(os.path.join(HERE, "records", "random.json"), "w") as file:
                file.write("{\n%s\n}\n" % ",\n".join(' "%s": %s' % (n, json.dumps(v)) for n, v in found.items()))
            return
        for script in sorted(glob.glob(os.path.join(HERE, "old", "*.py")) + glob.glob(os.path.join(HERE, "guides", "*.py"))):
            name = os.path.basename(script)[:-3]
            if not names or name in names:
                text = masked.masked(run(python, root, script, os.path.join(HERE, "start.py")))
                with open(os.path.join(HERE, "records", name + ".txt"), "w") as file:
                    file.write(text + "\n")
                print(name, len(text.splitlines()))


if __name__ == "__main__":
    main(*sys.argv[1:])
