"""fuse_bn_act gains on every kind of shape: the fused ops take less time than batch_norm and relu apart."""
import os
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
import norm_side  # noqa: E402

SHAPES = {"narrow": ([64, 16, 8, 8], "NCHW"), "wide": ([8, 256, 14, 14], "NCHW"), "audio": ([16, 64, 400], "NCHW"),
          "channels last": ([16, 16, 16, 32], "NHWC"), "matrix": ([512, 128], "NCHW")}
LEAST, MOST, GAIN = 20, 400, 0.97


def least_seconds(programs, enough):
    """The least CPU time of a run of each program; rounds of one run each, until `enough` holds."""
    best = [float("inf")] * len(programs)
    for number in range(MOST):
        for k, program in enumerate(programs):
            begin = time.process_time()
            program.run()
            best[k] = min(best[k], time.process_time() - begin)
        if number >= LEAST and enough(*best):
            break
    return best


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("name", SHAPES)
def test_fused_is_faster_than_apart(name, direction):
    shape, layout = SHAPES[name]
    job = {"shape": shape, "layout": layout, "pass": direction, "act": "relu", "count": 4}
    programs = [norm_side.Fluid("anabranch.fluid", dict(job, apart=apart)) for apart in (False, True)]
    for program in programs:
        program.run()
    fused, apart = least_seconds(programs, lambda fused, apart: fused < GAIN * apart)
    assert fused < apart, "{} us fused, {} us apart".format(round(1e6 * fused), round(1e6 * apart))
