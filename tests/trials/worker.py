"""Child of host.py: reads jobs (family, name, first, count) from its input and answers before and after each trial."""

import faulthandler
import importlib
import json
import os
import resource
import sys
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sanitized import SANITIZED  # noqa: E402

MEMORY_BYTES = 8 << 30


def own_channel():
    """The standard output, which from here on is that of errors: operators and C++ print, too."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def answer(**said):
    CHANNEL.write(json.dumps(said) + "\n")
    CHANNEL.flush()


def one_trial(family, name, number):
    from verdicts import of_error, still_works

    try:
        verdict, text = family.trial(name, number)
    except Exception as e:  # a generator that lets an error through: the verdict is the error's
        verdict, text = of_error(e)
    try:
        good = still_works()
    except Exception as e:  # what broke it is the finding
        good, text = False, "%s | then %s" % (text, e)
    return (verdict if good else "BROKEN"), text


def main():
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    import numpy

    import anabranch.fluid as fluid

    warnings.simplefilter("ignore")
    numpy.seterr(all="ignore")
    fluid.set_flags({"FLAGS_measure_threads": False, "FLAGS_memory_limit_mb": 2048})
    answer(ready=True)
    for line in sys.stdin:
        job = json.loads(line)
        family = importlib.import_module(job["family"])
        for number in range(job["first"], job["first"] + job["count"]):
            answer(at=number)
            begin = time.process_time()
            verdict, text = one_trial(family, job["name"], number)
            answer(of=number, verdict=verdict, text=text[:1500], cpu_s=round(time.process_time() - begin, 3))
        answer(end=True)


if __name__ == "__main__":
    CHANNEL = own_channel()
    main()
