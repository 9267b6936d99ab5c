"""The output of scripts without what differs from run to run, and whether two outputs say the same."""
import re

#: Lines that frameworks themselves print.
_OWN = re.compile(r"^(W|I|E)\d{4} |^share_vars_from is set|^\d{4}-\d\d-\d\d |^With sparse mode, if your models")
#: The tables of a profiler, up to what the script says next.
_PROFILE = re.compile(r"(?ms)^-+>\s+Profiling Report.*?(?=^profiled|\Z)")
#: What Print of 1.8.5 says in several lines.
_PRINTED = re.compile(r"(?m)^\d{9,}\t(.*)\tThe place is:CPUPlace\nTensor\[(.*)\]\n\tshape: \[(.*?),?\]\n\tdtype: f\n"
                      r"\tdata: (.*?),?$")
_TIME = re.compile(r"(\b(?:time|second|sec|cost time|speed|elapsed)[^0-9\n]{0,20})[0-9.]+(e-?\d+)?( ?sec)?", re.IGNORECASE)
_PATH = re.compile(r"/[\w.+-]+(?:/[\w.+-]+)+")
_NUMBER = re.compile(r"(?<![\w.])([-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf))(?![\w])")
#: Four digits.
RELATIVE = 1e-4
#: The rest of a number that is nearly zero when six decimals are printed.
ABSOLUTE = 2e-6


def masked(text):
    """str: without times, paths, and lines of the framework."""
    text = _PRINTED.sub(r"\1  \2  shape: [\3]  dtype: float32  data: [\4]", _PROFILE.sub("", text))
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not _OWN.search(line)]
    return _PATH.sub("PATH", _TIME.sub(r"\1TIME", "\n".join(lines)))


def split(text):
    """The texts between numbers, with spaces alike, and the numbers as they are written."""
    parts = _NUMBER.split(text)
    return [re.sub(r"\s+", " ", part) for part in parts[::2]], parts[1::2]


def _step(written):
    """Half of the last digit that is written."""
    digits = re.search(r"\.(\d*)", written)
    power = re.search(r"[eE]([-+]?\d+)", written)
    return 0.51 * 10.0 ** ((int(power.group(1)) if power else 0) - len(digits.group(1) if digits else ""))


def same(a, b):
    """Whether two written numbers are equal to four digits: whole ones exactly, others up to how they are written."""
    if a == b:
        return True
    x, y = float(a), float(b)
    if not re.search(r"[.eEni]", a) or not re.search(r"[.eEni]", b):
        return x == y
    if x != x or y != y:
        return x != x and y != y
    return abs(x - y) <= RELATIVE * max(abs(x), abs(y)) + ABSOLUTE + max(_step(a), _step(b))


def difference(expected, found):
    """The first difference of two outputs in words; None where they say the same."""
    expected, found = masked(expected).splitlines(), masked(found).splitlines()
    for number, (line, got) in enumerate(zip(expected, found), 1):
        (words, numbers), (own_words, own_numbers) = split(line), split(got)
        if words != own_words or not all(map(same, numbers, own_numbers)):
            return "line %d:\nrecorded: %s\nfound:    %s" % (number, line, got)
    if len(expected) != len(found):
        return "%d lines recorded, %d found" % (len(expected), len(found))
    return None
