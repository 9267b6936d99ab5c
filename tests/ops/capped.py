"""A pytest plugin (-p capped): kernels choose among the instruction sets of an older processor, named by CAPPED.
For the kernel library that is a setting of the environment, for our own loops a call that Highway offers to tests.
"""
import ctypes
import os

#: Instruction sets of older processors: (name for the kernel library, its number, Highway's targets).
SETS = {"SSE4": ("SSE41", 0x1, 1 << 12 | 1 << 11), "AVX2": ("AVX2", 0x7, 1 << 12 | 1 << 11 | 1 << 9)}


def libraries():
    """(kernel library, Highway), as this process has loaded or will load them; None where there is none."""
    try:
        return ctypes.CDLL("libdnnl.so.2"), ctypes.CDLL("libhwy.so.1")
    except OSError:
        return None


def effective():
    """(number of the kernel library's instruction set, Highway's targets) in this process."""
    dnnl, hwy = libraries()
    supported = hwy._ZN3hwy16SupportedTargetsEv
    supported.restype = ctypes.c_int64
    return dnnl.dnnl_get_effective_cpu_isa(), supported()


def cap(name):
    """Before the first kernel of the process has run."""
    isa, number, targets = SETS[name]
    os.environ["ONEDNN_MAX_CPU_ISA"] = isa
    choose = libraries()[1]._ZN3hwy26SetSupportedTargetsForTestEl
    choose.argtypes, choose.restype = [ctypes.c_int64], None
    choose(targets)
    assert effective() == (number, targets), effective()


if os.environ.get("CAPPED"):
    cap(os.environ["CAPPED"])
