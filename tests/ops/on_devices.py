"""A pytest plugin (-p on_devices): says at the end which operators with kernels for devices only the CPU ran. With
ANABRANCH_TEST_SHARE=3/10 it keeps every tenth test from the fourth on.
"""
import os
import sys


def pytest_collection_modifyitems(config, items):
    share = os.environ.get("ANABRANCH_TEST_SHARE")
    if share:
        first, step = map(int, share.split("/"))
        kept = items[first::step]
        config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % step != first])
        items[:] = kept


def pytest_sessionfinish(session):
    from op_case import ON_CPU

    from anabranch import _core
    with_kernels = {t for t in _core.op_types() if _core.op_info(t)["device_dtypes"]}
    there = sorted(t for t in with_kernels if not all(ON_CPU.get(t, [True])))
    missing = sorted(t for t in with_kernels & ON_CPU.keys() if all(ON_CPU[t]))
    sys.stdout.write("\n%d operators ran on the device\nonly on the CPU: %s\n"
                     % (len(there), ", ".join(missing) or "none"))
