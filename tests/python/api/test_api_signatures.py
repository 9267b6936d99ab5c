"""All public callables have the signatures of Fluid 1.8.5: order, names and defaults of their arguments.

data/api.json.gz lists the callables of the modules that scripts import, with the methods and properties of classes and
the values of their attributes, as inspect.signature shows them in 1.8.5. A difference is mended, or it is in a table
below.
"""
import gzip
import importlib
import inspect
import json
import os
import re

import pytest
from repository import DATA, ROOT

import anabranch.fluid as fluid

MODULES = ("layers", "initializer", "regularizer", "clip", "optimizer", "nets", "metrics")
with gzip.open(os.path.join(DATA, "api.json.gz"), "rt") as _file:
    API = json.load(_file)
with open(os.path.join(ROOT, "docs", "absent.md"), encoding="utf-8") as _file:
    ABSENT_PAGE = _file.read()

#: Callables with further arguments after those of 1.8.5: what they are for.
LONGER = {
    "Executor.infer_from_dataset": ("deterministic", "progress", "metrics"),     # of this engine
    "Executor.train_from_dataset": ("deterministic", "progress", "checkpoints", "metrics"),  # likewise
    "ParallelExecutor.__init__": ("kwargs",),               # catches arguments of Fluid 0.x, to name their replacements
    **dict.fromkeys(("Adagrad.__init__", "AdagradOptimizer.__init__"), ("row_wise",)),  # one moment for a row
    **dict.fromkeys(("L1Decay.__init__", "L1DecayRegularizer.__init__",                 # of the rows of a batch only
                     "L2Decay.__init__", "L2DecayRegularizer.__init__"), ("lazy_mode",)),
    "ParamAttr.__init__": ("gradient_clip",),               # of Fluid 1.5 to 1.7, whose programs run, too
    "DistributedTranspiler.save_persistables": ("mode", "keep"),  # checkpoints with changed rows
    "decorate": ("dtype",),                                 # float16 or bfloat16
    "CollectiveOptimizer.__init__": ("owner",),             # the fleet; users call fleet.distributed_optimizer
    "CollectiveOpBasedOptimizer.__init__": ("owner",),
    "TranspilerOptimizer.__init__": ("owner",),
    "TrainStatus.__init__": ("steps",),                     # checkpoints within an epoch
    "load_inference_model": ("trusted",),                   # operators with side effects are refused without it
    "save_inference_model": ("schema",),                    # of raw rows
    "Collective.save_inference_model": ("schema",),
    "DistributedTranspiler.save_inference_model": ("schema",),
}

#: Callables with arguments that 1.8.5 requires and that may be omitted here, which no program of 1.8.5 notices.
OPTIONAL = {
    "HDFSClient.__init__": ("hadoop_home", "configs"), "CollectiveOptimizer.__init__": ("strategy",),
    "Collective.clean_redundant_check_points": ("fs", "checkpoint_num"),
    "Collective.load_check_point": ("main_program", "fs", "local_cache_path", "ignore_empty"),
    "Collective.save_check_point": ("main_program", "fs", "local_cache_path", "remain_all_checkpoint"),
    "LayerHelper.create_parameter": ("dtype",),
    "FleetUtil.get_global_auc": ("scope", "stat_pos", "stat_neg"),
    "FleetUtil.print_global_auc": ("scope", "stat_pos", "stat_neg", "print_prefix"),
    "FleetUtil.set_zero": ("scope", "place", "param_type"),
}

#: Callables with another default value, and why.
DEFAULTS = {"HDFSClient.lsr": "excludes: an empty tuple, which callers cannot change, for an empty list"}

#: Methods that are refused by name when they are called, and why.
REFUSED = {"FleetUtil": "all but messages and metrics belong to pslib, a parameter server that is not public"}


def found_here(path):
    """The object of a path such as ``fluid.layers.fc``; None if there is none."""
    at, found = "anabranch", importlib.import_module("anabranch")
    for part in path.split("."):
        at += "." + part
        if not hasattr(found, part):
            try:
                importlib.import_module(at)
            except ImportError:
                return None
        found = getattr(found, part)
    return found


def untyped(function):
    """A signature as 1.8.5 has it: names, order and defaults, without types."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def parts(text):
    """[(name with stars, default or None)] of a signature's text."""
    found, depth, part = [], 0, ""
    for c in text[1:-1] + ",":
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            name, _, default = part.strip().partition("=")
            found += [(name, default or None)] if name else []
            part = ""
        else:
            part += c
    return found


def compared(key, here, there):
    """The difference of two signatures that no table allows, or None; and the rows of the tables that were used."""
    if here == there or object_init(here) == object_init(there):
        return None, set()
    mine, theirs, used = parts(here), parts(there), set()
    more = tuple(name.lstrip("*") for name, _ in mine[len(theirs):])
    if more and more == LONGER.get(key):
        mine, used = mine[:len(theirs)], used | {("LONGER", key)}
    omitted = tuple(a for (a, given), (b, required) in zip(mine, theirs) if given is not None and required is None)
    if omitted and omitted == OPTIONAL.get(key):
        mine = [(name, None if name in omitted else default) for name, default in mine]
        used.add(("OPTIONAL", key))
    if key in DEFAULTS and [name for name, _ in mine] == [name for name, _ in theirs]:
        mine, used = theirs, used | {("DEFAULTS", key)}
    return None if mine == theirs else "%s: %s, but %s in 1.8.5" % (key, here, there), used


def object_init(text):
    return "(self)" if text == "(self, /, *args, **kwargs)" else text


def differences(path):
    """Lists of what differs at one path, and the rows of the tables that were used."""
    found, expected, name = found_here(path), API[path], path.split(".")[-1]
    if not isinstance(expected, dict):
        difference, used = compared(name, untyped(found), expected) if expected else (None, set())
        return [difference] if difference else [], used
    texts = {"__init__": expected["init"]} if expected.get("init") else {}
    wrong, rows = [], set()
    for method, text in {**texts, **expected.get("methods", {})}.items():
        if not hasattr(found, method):
            wrong += [] if name in REFUSED else ["%s.%s is absent" % (name, method)]
            rows |= {("REFUSED", name)} & {("REFUSED", n) for n in REFUSED}
        elif text:
            difference, used = compared("%s.%s" % (name, method), untyped(getattr(found, method)), text)
            wrong += [difference] if difference else []
            rows |= used
    wrong += ["%s.%s is absent" % (name, p) for p in expected.get("properties", ()) if not hasattr(found, p)]
    for attribute, value in expected.get("values", {}).items():
        if not hasattr(found, attribute) or not same_value(getattr(found, attribute), value):
            wrong.append("%s.%s is not %s" % (name, attribute, value))
    return wrong, rows


def same_value(value, text):
    if text == "[]":  # a list that programs extend
        return isinstance(value, list)
    return text in (repr(value), "%s.%s" % (type(value).__name__, getattr(value, "name", "")))


PRESENT = sorted(path for path in API if found_here(path) is not None)


@pytest.mark.parametrize("path", PRESENT)
def test_signatures_are_those_of_1_8_5(path):
    assert differences(path)[0] == []


def test_every_row_of_the_tables_is_needed():
    used = set().union(*(differences(path)[1] for path in PRESENT))
    tables = {"LONGER": LONGER, "OPTIONAL": OPTIONAL, "DEFAULTS": DEFAULTS, "REFUSED": REFUSED}
    assert used == {(table, key) for table, rows in tables.items() for key in rows}


@pytest.mark.parametrize("path", sorted(set(API) - set(PRESENT)))
def test_what_is_absent_is_on_the_page(path):
    module, _, name = path.rpartition(".")
    assert any("`paddle.%s`" % module in line and "`%s`" % name in line for line in ABSENT_PAGE.splitlines())


def test_advice_on_the_page_names_modules_as_scripts_write_them():
    assert re.findall(r"^\*(Paddle|Fluid|Anabranch)\.\w+", ABSENT_PAGE, re.M) == []


@pytest.mark.parametrize("here", ["(x, y)", "(y, x=1)", "(x=1)", "(x=2, y)", "(x=1, y=None)", "(x=1, y, z=0)"])
def test_a_difference_is_found(here):
    assert compared("f", here, "(x=1, y)")[0] == "f: %s, but (x=1, y) in 1.8.5" % here


def test_defaults_with_commas_are_one_part():
    assert parts("(self, a=[1, 2], b=(3, {'c': 4}), *args)") == [
        ("self", None), ("a", "[1, 2]"), ("b", "(3, {'c': 4})"), ("*args", None)]


def test_nothing_is_public_by_accident():
    """A name of __all__ is one of Fluid, or a base that users derive from."""
    bases = {"fluid.optimizer.Optimizer"}
    for module in MODULES:
        names = {"fluid.%s.%s" % (module, name) for name in getattr(fluid, module).__all__}
        strange = sorted(names - set(API) - bases - ALIASES)
        assert not strange, (
            "%s: not a name of Fluid 1.8.5, and fluid.%s has only those. Move the function to a module of anabranch, "
            "such as anabranch/word2vec.py, see docs/develop/add_an_operator.md" % (", ".join(strange), module))


#: Second names that Fluid has but does not document, and a layer that it has in layers.detection alone.
ALIASES = {"fluid.optimizer.RMSProp", "fluid.optimizer.Lamb", "fluid.regularizer.L1DecayRegularizer",
           "fluid.layers.detection_map"}


def test_most_of_the_interface_is_there():
    assert len(API) == 725 and len(PRESENT) >= 695
