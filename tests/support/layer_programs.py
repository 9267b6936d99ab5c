"""Builds the programs of layer_cases/ and describes them: operators, attributes, variables, or the error raised.

    layer_programs.py --fluid paddle.fluid      records with another implementation the cases that are not in
                                                data/layer_programs.json.gz yet; --all: all of them
    layer_programs.py --fluid anabranch.fluid   records data/layer_programs_own.json.gz: those that test_layers_build.py
                                                lists as different

Runs on Python 3.7 and later.
"""
import argparse
import gzip
import importlib
import importlib.util
import json
import os
import warnings

from layer_cases import CASES
from repository import DATA, TESTS

RECORD = os.path.join(DATA, "layer_programs.json.gz")
OWN = os.path.join(DATA, "layer_programs_own.json.gz")


def _load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


golden = _load(os.path.join(TESTS, "golden", "golden.py"))


#: The backward pass of 1.8.5 appends operators without these defaults.
DEFAULTS = {"fill_constant": ["str_value"], "scale": ["bias", "bias_after_scale"]}


def operators(program):
    """[block: [(type, inputs, outputs, attributes, role, role variables)]] of a program."""
    blocks = []
    for block in golden.decode_program(program.desc.serialize_to_string()):
        ops = []
        for op in block["ops"]:
            attrs = {k: list(v.values())[0] for k, v in op["attrs"].items()}
            role, pair = attrs.pop("op_role", 0), attrs.pop("op_role_var", [])
            attrs.pop("op_namescope", None)  # counts the scopes of the whole process
            attrs.pop("@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@", None)  # a mark for the kernels of 1.8.5
            for own in ("op_draw_number", "op_read_versions"):  # of this engine; 1.8.5 passes over them
                attrs.pop(own, None)
            if role & 1:
                attrs = {k: v for k, v in attrs.items() if k not in DEFAULTS.get(op["type"], ())}
            slots = [{k: v for k, v in op[side].items() if v} for side in ("inputs", "outputs")]
            if op["type"] in ("conditional_block", "while", "recurrent"):  # 1.8.5 lists what a block reads in no order
                slots = [{k: sorted(v) for k, v in side.items()} for side in slots]
            ops.append([op["type"], slots[0], slots[1], attrs, role, pair])
        blocks.append(ops)
    return blocks


def variables(program):
    """{name: [shape, dtype, persistable, stop_gradient]} of all variables of tensors but the internal XShape."""
    found = {}
    internal = {n for b in program.blocks for op in b.ops if "XShape" in op.output_names for n in op.output("XShape")}
    for v in program.list_vars():
        if v.name not in internal and str(v.type).endswith(("LOD_TENSOR", "SELECTED_ROWS")):
            found[v.name] = [list(v.shape), int(v.dtype), bool(v.persistable), bool(v.stop_gradient)]
    return found


def _names(value):
    if isinstance(value, (list, tuple)):
        return [name for v in value for name in _names(v)]
    return [value.name if hasattr(value, "name") else repr(value)]


def describe(fluid, fn):
    """What ``fn`` builds, as data; the class of the exception when it raises."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = fn(fluid, fluid.layers)
        except Exception as error:
            return type(error).__name__
    return {"result": _names(result), "main": operators(main), "startup": operators(startup), "vars": variables(main)}


def _describe_apart(fluid, fn):
    """As :func:`describe`, in a separate process: an error may leave a name scope open."""
    read, write = os.pipe()
    if os.fork() == 0:
        with os.fdopen(write, "w") as f:
            json.dump(describe(fluid, fn), f)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    os.wait()
    return json.loads(text)


def recorded(path=RECORD):
    """{case: description} of Paddle 1.8.5, or of another record."""
    with gzip.open(path, "rt") as f:
        return json.load(f)


def _write(path, record):
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as f:
        f.write(json.dumps(record, sort_keys=True, separators=(",", ":")).encode())


def record_own(fluid):
    """Writes what this package builds where it differs from the record, under the flag of the tests."""
    different = _load(os.path.join(TESTS, "python", "layers", "test_layers_build.py")).DIFFERENT
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    _write(OWN, {name: _describe_apart(fluid, CASES[name]) for name in different})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fluid", required=True)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    fluid = importlib.import_module(options.fluid)
    if fluid.__name__.startswith("paddle"):
        known = {} if options.all else recorded()
        _write(RECORD, {name: known.get(name) or _describe_apart(fluid, fn) for name, fn in CASES.items()})
    else:
        record_own(fluid)
