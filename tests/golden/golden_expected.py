"""Lines that cannot pass yet, and the arrays in which they differ."""
import fnmatch
import json


class Expected(object):
    """{behaviour or "both": {"PROGRAM MODE": {"why": ..., "arrays": [...]}}}.

    `arrays` are the arrays that differ: NAME of a fetch, "final NAME" of a variable after the last step. * stands for
    any text in a key and in the name of an array.
    """

    def __init__(self, path):
        self.lists, self.used = {}, set()
        if path:
            with open(path) as f:
                self.lists = json.load(f)

    def entry(self, behaviour, line):
        for part in ("both", behaviour):
            for key, entry in self.lists.get(part, {}).items():
                if fnmatch.fnmatchcase(line, key):
                    self.used.add((part, key))
                    return entry
        return None

    def unused(self, behaviours):
        return sorted("%s: %s" % (part, key) for part in self.lists for key in self.lists[part]
                      if (part == "both" or part in behaviours) and (part, key) not in self.used)


def unlisted(entry, arrays):
    """The reason why a failure is not the listed one, or None. `arrays`: those that differ, None if it raised."""
    if not arrays:
        return "it raises, and differs in no array"
    beyond = [a for a in arrays if not any(fnmatch.fnmatchcase(a, p) for p in entry["arrays"])]
    if beyond:
        return "not listed: %s" % ", ".join(sorted(beyond)[:8])
    equal = [p for p in entry["arrays"] if not any(fnmatch.fnmatchcase(a, p) for a in arrays)]
    return "listed, but equal: %s" % ", ".join(equal) if equal else None


def verdict(ok, entry, arrays=None):
    """(verdict, why). PASS, FAIL, XFAIL (listed, and differs in the listed arrays alone), XPASS (listed, but passes: an
    error)."""
    if entry is None:
        return ("PASS" if ok else "FAIL"), None
    if ok:
        return "XPASS", "listed: " + entry["why"]
    wrong = unlisted(entry, arrays)
    return ("FAIL", wrong) if wrong else ("XFAIL", "listed: " + entry["why"])
