"""A pytest plugin (-p on_devices): says at the end which operators with kernels for devices only the CPU ran."""
import sys


def pytest_sessionfinish(session):
    from op_case import ON_CPU

    from anabranch import _core
    with_kernels = {t for t in _core.op_types() if _core.op_info(t)["device_dtypes"]}
    there = sorted(t for t in with_kernels if not all(ON_CPU.get(t, [True])))
    missing = sorted(t for t in with_kernels & ON_CPU.keys() if all(ON_CPU[t]))
    sys.stdout.write("\n%d operators ran on the device\nonly on the CPU: %s\n"
                     % (len(there), ", ".join(missing) or "none"))
