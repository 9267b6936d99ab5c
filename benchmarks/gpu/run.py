"""G1-G4 on one GPU, engines side by side: windows of each in turn, medians, and the first engine as a multiple of the
best of the others.

    run.py [--rows G1 G2 ...] [--sides fluid torch jax] [--mode MODE] [--windows 5] [--seconds 5] [--curve 20] [--tiny]
           [--out FILE]

Every engine runs in its own process, by the interpreter that GPU_FLUID_PYTHON, GPU_TORCH_PYTHON or GPU_JAX_PYTHON names,
else this one; all of a row get ready at once, and each waits while another one is measured. Products of float32 may round
their operands to TF32 on all sides, as JAX does where nothing is said. A side that cannot run a row says why and is left out of it.
All sides begin with equal matrices, and the losses of their first steps (--curve) stand next to the rates: with --windows 0
they are all that is measured, and a row fails where the first side learns less (`learns`).
--tiny with FLAGS_device_plugin=simdevice tries the scripts where there is no GPU; its numbers mean nothing.
"""
import argparse
import importlib
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time

import cases

HERE = os.path.dirname(os.path.abspath(__file__))


def mode_of(name, options):
    """The options of torch.compile for a row: by ROW=MODE, or else by the MODE that names no row."""
    modes = dict(word.split("=", 1) if "=" in word else ("", word) for word in options.mode)
    return modes.get(name, modes.get("", "max-autotune"))


def serve(side, name, options):
    """Prepares a row; then a line of standard input, the number of steps or `end`, gets one with their seconds."""
    case = cases.case_of(name, options)
    options.mode = mode_of(name, options)
    steps = importlib.import_module("side_" + side).prepare(case, options)
    curve = [steps(1) for _ in range(options.curve)]
    steps(2)  # plans, compiles, captures
    steps(3)
    print(json.dumps(dict(ready=True, curve=curve)), flush=True)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        begin = time.perf_counter()
        last = steps(int(line))
        print(json.dumps(dict(seconds=time.perf_counter() - begin, last=last)), flush=True)


class Side:
    def __init__(self, side, name, options):
        self.side, self.per_step, self.rates, self.why = side, cases.units(cases.case_of(name, options)), [], ""
        python = os.environ.get("GPU_%s_PYTHON" % side.upper(), sys.executable)
        self.mode = mode_of(name, options) if side == "torch" else None
        words = ["--serve", side, "--rows", name, "--mode", mode_of(name, options),
                 "--curve", str(options.curve), "--batch", str(options.batch or 0)]
        words += ["--" + flag for flag in ("tiny", "float32") if getattr(options, flag)]
        self.said = tempfile.TemporaryFile("w+")  # not a pipe: what autotuning prints would fill it
        environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false", FLAGS_enable_cublas_tensor_op_math="1")
        self.process = subprocess.Popen([python, os.path.join(HERE, "run.py")] + words, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.said, universal_newlines=True,
                                        env=environment)
        self.steps = 1
        self.curve, self.last = [], None

    def ready(self, until=None):
        """Waits for its first steps; one that has not made them by then is left out."""
        if until is not None and not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
            self.process.kill()
            self.why = "not ready in time"
        if not self.why:
            self.answer("curve")

    def answer(self, field):
        line = self.process.stdout.readline()
        if line:
            told = json.loads(line)
            setattr(self, field, told.get(field))
            return told
        self.process.communicate()
        self.said.seek(0)
        self.why = (self.said.read().strip().splitlines() or ["it ended"])[-1]
        return None

    def window(self, seconds=None):
        """Runs the steps of a window; with seconds given, finds how many those are."""
        if self.why:
            return
        self.process.stdin.write("%d\n" % self.steps)
        self.process.stdin.flush()
        told = self.answer("last")
        if told and seconds:
            self.steps = max(1, int(self.steps * seconds / max(told["seconds"], 1e-6)))
        elif told:
            self.rates.append(self.steps * self.per_step / told["seconds"])

    def end(self):
        if not self.why:
            self.process.communicate("end\n")


def rates_of(side):
    if not side.rates:
        return {}
    return dict(median=statistics.median(side.rates), lowest=min(side.rates), highest=max(side.rates))


def apart(sides):
    """The largest distance of a first step's loss from that of the first side, as a share of it, by side."""
    first, others = sides[0].curve, [side for side in sides[1:] if side.curve]
    return {side.side: max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(first, side.curve))
            for side in others if first}


def learns(sides):
    """Whether the first side ends its curve as low as the best of the others, with room for rounding: the means of the last
    quarters. None without a rival."""
    means = [statistics.mean(side.curve[-max(1, len(side.curve) // 4):]) for side in sides if side.curve]
    return means[0] <= 1.2 * min(means[1:]) + 0.05 if len(means) > 1 and sides[0].curve else None


def measure(name, options, ahead=()):
    """`ahead`: sides that are ready already."""
    sides = [Side(side, name, options) for side in options.sides[:len(options.sides) - len(ahead)]]
    for side in sides:
        side.ready()
    sides += ahead
    for seconds in (options.seconds / 4, options.seconds) if options.windows else ():
        for side in sides:
            side.window(seconds)
    for _ in range(options.windows):
        for side in sides:
            side.window()
    for side in sides:
        side.end()
    case = cases.case_of(name, options)
    row = dict(row=name, what=case["what"], unit=case["unit"], windows=options.windows, seconds=options.seconds,
               tiny=options.tiny, sides={})
    for side in sides:
        row["sides"][side.side] = dict(why=side.why) if side.why else dict(
            mode=side.mode, curve=[float("%.5g" % loss) for loss in side.curve], last_loss=side.last, **rates_of(side))
    medians = [row["sides"][s.side].get("median") for s in sides]
    rivals = [m for m in medians[1:] if m]
    row["apart"], row["learns"] = apart(sides), learns(sides)
    row["ratio"] = medians[0] / max(rivals) if medians[0] and rivals else None
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=sorted(cases.CASES), choices=sorted(cases.CASES))
    parser.add_argument("--sides", nargs="+", default=["fluid", "torch", "jax"], choices=["fluid", "torch", "jax"])
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--curve", type=int, default=20, help="steps from the equal beginning whose losses are shown")
    parser.add_argument("--batch", type=int, help="another size of a batch")
    parser.add_argument("--together", type=float, metavar="SECONDS", help="all sides but the first get ready for all rows "
                        "at once; those that are not by then are left out")
    parser.add_argument("--out")
    parser.add_argument("--tiny", action="store_true", help="small extents")
    parser.add_argument("--float32", action="store_true", help="no mixed precision")
    parser.add_argument("--mode", nargs="+", default=["max-autotune"], metavar="[ROW=]MODE", help="of torch.compile, for "
                        "all rows or for one; eager: PyTorch without it")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.rows[0], options)
        return 0
    good = True
    ahead = {name: [] for name in options.rows}
    if options.together:
        until = time.monotonic() + options.together
        ahead = {name: [Side(side, name, options) for side in options.sides[1:]] for name in options.rows}
        for sides in ahead.values():
            for side in sides:
                side.ready(until)
    for name in options.rows:
        measured = measure(name, options, ahead[name])
        good = good and "why" not in measured["sides"][options.sides[0]] and (options.windows or measured["learns"])
        row = json.dumps(measured)
        print(row, flush=True)
        if options.out:
            with open(options.out, "a") as file:
                file.write(row + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
