"""Calls every layer with arguments of each dtype and of other classes, and notes which calls raise which exception.

    layer_refusals.py --fluid paddle.fluid      records data/layer_refusals.json.gz; --only LAYER ...: prints these
    layer_refusals.py --fluid anabranch.fluid   prints what differs from the record, with the reasons of
                                                data/layer_refusals.tsv; a ? stands for a reason that is missing

The calls are those of layer_cases/: for each layer and argument, the first call that succeeds with a Variable there.
One argument at a time is replaced; ``*`` stands for all Variables that have the dtype of the first one. Programs are
built and never run. Runs on Python 3.7 and later.
"""
import argparse
import functools
import gzip
import importlib
import json
import os
import signal
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import layer_cases  # noqa: E402
import refusal_cases  # noqa: E402
from argument_variants import DTYPES, held, joint, variants  # noqa: E402
from repository import DATA  # noqa: E402
from watched_calls import watched  # noqa: E402

CASES = dict(layer_cases.CASES, **refusal_cases.CASES)
RECORD = os.path.join(DATA, "layer_refusals.json.gz")
LISTED = os.path.join(DATA, "layer_refusals.tsv")
#: Arguments that are not probed.
NOT_PROBED = ("name", "self", "kwargs", "outs", "outputs")


class Done(BaseException):
    """Ends a case whose call has been tried."""


def run(fluid, case, on_call):
    """Builds a case; ``on_call(index, label, function, bound)`` makes its calls."""
    count = [-1]

    def counted(label, function, bound):
        count[0] += 1
        return on_call(count[0], label, function, bound)

    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), warnings.catch_warnings(), \
            watched(fluid, counted) as modules:
        warnings.simplefilter("ignore")
        try:
            CASES[case](*modules)
        except (Exception, Done):  # noqa: S110 - the verdicts are noted elsewhere
            pass


def survey(fluid, case):
    """[(index, label, {argument: form})] of the calls of a case that succeed. The form is "" for a Variable, "[]" for a
    list of them, ":" for anything else."""
    found = []

    def on_call(index, label, function, bound):
        result = function(*bound.args, **bound.kwargs)
        bound.apply_defaults()
        forms = {name: ("[]" if isinstance(value, (list, tuple)) else "") if held(fluid, value) else ":"
                 for name, value in bound.arguments.items() if name not in NOT_PROBED}
        found.append((index, label, forms))
        return result

    run(fluid, case, on_call)
    return found


def chosen(fluid, only=()):
    """[(case, index, label, arguments to probe, each followed by its form)]."""
    seen, calls = set(), []
    for case in CASES:
        for index, label, forms in survey(fluid, case):
            if only and label not in only:
                continue
            keys = [(label, name + form) for name, form in forms.items()]
            keys += [(label, "*")] if sum(form != ":" for form in forms.values()) > 1 else []
            fresh = [key for key in keys if key not in seen and (key[1][-1:] != ":" or label not in seen)]
            seen.update(fresh, [label])
            if fresh:
                calls.append([case, index, label, [key for _, key in fresh]])
    return calls


def probe(fluid, case, index, arguments, note, skip=0):
    """Tries all variants of one call, from the one of number ``skip``; ``note(argument, variant, verdict)``."""
    def on_call(at, label, function, bound):
        if at != index:
            return function(*bound.args, **bound.kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        tried = 0
        for key in arguments:
            name = key.rstrip("[]:")
            for variant, make in joint(fluid, given) if key == "*" else variants(fluid, name, given.get(name)):
                tried += 1
                if tried > skip:
                    note(key, variant, None)
                    note(key, variant, _verdict(fluid, function, bound, given, name, make))
        raise Done()

    run(fluid, case, on_call)


def _verdict(fluid, function, bound, given, name, make):
    program = fluid.default_main_program()
    block = program.current_block_idx
    made = make()
    bound.arguments.update(given)
    if isinstance(given.get("name"), str):  # a name names one Variable
        bound.arguments["name"] = fluid.unique_name.generate("probe")
    bound.arguments.update(made if name == "*" else {name: made})
    try:
        function(*bound.args, **bound.kwargs)
        return "ok"
    except Exception as error:
        return "TypeError" if isinstance(error, TypeError) else type(error).__name__
    finally:
        program.current_block_idx = block


def _child(fluid, calls, first, skip, file):
    """Probes the calls from number ``first`` on, without its first ``skip`` variants; a line for each verdict."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for number, (case, index, _, arguments) in enumerate(calls[first:], first):
        signal.alarm(30)    # a variant that never returns counts as one that ends the process
        probe(fluid, case, index, arguments, functools.partial(_write, file, number), skip)
        skip = 0


def _write(file, number, *row):
    file.write(json.dumps((number,) + row) + "\n")


def probe_all(fluid, calls):
    """[[(argument, variant, verdict)]] of each call. Some variants end 1.8.5: another process goes on after them."""
    found = [[] for _ in calls]
    first = skip = 0
    while first < len(calls):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            with os.fdopen(write, "w", 1) as file:
                _child(fluid, calls, first, skip, file)
            os._exit(0)
        os.close(write)
        last = None
        with os.fdopen(read) as file:
            for line in file:
                number, argument, variant, verdict = last = json.loads(line)
                if verdict:
                    found[number].append((argument, variant, verdict))
        if os.waitpid(child, 0)[1] == 0:
            break
        if last is None:
            raise SystemExit("%s: nothing was tried" % calls[first])
        if not last[3]:
            found[last[0]].append((last[1], last[2], "crash"))
        first, skip = last[0], len(found[last[0]])
    return found


def folded(rows):
    """{argument: {verdict: "variant variant ..."}}; spaces in the names of variants become underscores."""
    made = {}
    for argument, variant, verdict in rows:
        made.setdefault(argument, {}).setdefault(verdict, []).append(variant.replace(" ", "_"))
    return {a: {v: " ".join(names) for v, names in verdicts.items()} for a, verdicts in made.items()}


def recorded():
    """[[case, index, label, arguments, {argument: {verdict: variants}}]] of 1.8.5."""
    with gzip.open(RECORD, "rt") as f:
        return json.load(f)


def ours(fluid, call):
    """What :func:`recorded` has for a call, of this package."""
    rows = []
    probe(fluid, call[0], call[1], call[3], lambda *row: row[2] and rows.append(row))
    return folded(rows)


def _is_notable(argument, there, here):
    """Whether a verdict differs. Two errors do not, unless the one of 1.8.5 is TypeError. For an argument that is
    not a dtype and contains no Variable, only what this package accepts and 1.8.5 refuses by TypeError counts."""
    if there == here or (there not in ("ok", "TypeError") and here != "ok"):
        return False
    return not argument.endswith(":") or argument.endswith("dtype:") or (there == "TypeError" and here == "ok")


def differences(fluid, calls):
    """[(layer, argument, verdict of 1.8.5, ours, "variant variant ...")], dtypes apart from other variants."""
    found = {}
    for call in calls:
        here = {(a, name): verdict for a, verdicts in ours(fluid, call).items() for verdict, names in verdicts.items()
                for name in names.split()}
        for argument, verdicts in call[4].items():
            for verdict, names in verdicts.items():
                for name in names.split():
                    own = here.get((argument, name), "unreached")
                    if _is_notable(argument, verdict, own):
                        found.setdefault((call[2], argument, verdict, own, name in DTYPES), []).append(name)
    return [key[:4] + (" ".join(names),) for key, names in found.items()]


def listed():
    """{(layer, argument, verdict of 1.8.5, ours, variants): reason}: the differences that are meant."""
    with open(LISTED) as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    return {tuple(row[:5]): row[5] for row in rows}


def _record(fluid, only):
    calls = chosen(fluid, only)
    record = [call + [folded(rows)] for call, rows in zip(calls, probe_all(fluid, calls))]
    if only:
        print(json.dumps(record, indent=1))
        return
    with open(RECORD, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as f:
        f.write(json.dumps(record, separators=(",", ":")).encode())


def _compare(fluid, only):
    known = listed()
    for row in differences(fluid, [c for c in recorded() if not only or c[2] in only]):
        print("\t".join(row + (known.get(row, "?"),)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fluid", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    fluid = importlib.import_module(options.fluid)
    (_record if fluid.__name__.startswith("paddle") else _compare)(fluid, options.only)
