"""The signatures of layers, optimizers and so on are those of Fluid 1.8: names, order, defaults of all arguments."""
import inspect
import json
import os

import pytest

import anabranch.fluid as fluid

MODULES = ("layers", "initializer", "regularizer", "clip", "optimizer", "nets", "metrics")
with open(os.path.join(os.path.dirname(__file__), "data", "api.json")) as _file:
    API = json.load(_file)


def _find(path):
    found = fluid
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _untyped(function):
    """A signature as Fluid has it: names, order and defaults, without types."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


HERE = sorted(path for path in API if _find(path) is not None)


@pytest.mark.parametrize("path", HERE)
def test_signature(path):
    found, expected = _find(path), API[path]
    if not isinstance(expected, dict):
        if expected is not None:
            assert _untyped(found) == expected
        return
    if expected["init"] is not None:
        assert _untyped(found.__init__) == expected["init"]
    for method, signature in expected["methods"].items():
        if signature is not None:
            assert _untyped(getattr(found, method)) == signature, method


def test_nothing_is_public_by_accident():
    """A name of __all__ is one of Fluid, or a base that users derive from."""
    bases = {"fluid.optimizer.Optimizer"}
    for module in MODULES:
        names = {"fluid.%s.%s" % (module, name) for name in getattr(fluid, module).__all__}
        assert names <= set(API) | bases | ALIASES


#: Second names that Fluid has but does not document, and a layer that it has in layers.detection alone.
ALIASES = {"fluid.optimizer.RMSProp", "fluid.optimizer.Lamb", "fluid.regularizer.L1DecayRegularizer",
           "fluid.layers.detection_map"}


def test_most_of_the_interface_is_there():
    assert len(HERE) >= 215
