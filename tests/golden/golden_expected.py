"""Lines that cannot pass yet."""
import json


class Expected(object):
    """Lines that cannot pass yet: {behaviour or "both": {"PROGRAM MODE": reason}}; * stands for any text in a key."""

    def __init__(self, path):
        self.lists, self.used = {}, set()
        if path:
            with open(path) as f:
                self.lists = json.load(f)

    def reason(self, behaviour, line):
        import fnmatch
        for part in ("both", behaviour):
            for key, why in self.lists.get(part, {}).items():
                if fnmatch.fnmatchcase(line, key):
                    self.used.add((part, key))
                    return why
        return None

    def unused(self, behaviours):
        return sorted("%s: %s" % (part, key) for part in self.lists for key in self.lists[part]
                      if (part == "both" or part in behaviours) and (part, key) not in self.used)


def verdict(ok, why):
    """PASS, FAIL, XFAIL (listed, and fails), XPASS (listed, but passes: an error)."""
    if why is None:
        return "PASS" if ok else "FAIL"
    return "XPASS" if ok else "XFAIL"
