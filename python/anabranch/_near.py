"""Names that were probably meant."""


def near(name, names, most=3):
    """str: "; did you mean fc?" where ``names`` has something like ``name``, else "". It names the ``most`` likeliest.
    Case does not count.

    >>> near("rleu", ["relu", "tanh"]), near("sgd", ["SGD", "Adam"]), near("x", ["relu"])
    ('; did you mean relu?', '; did you mean SGD?', '')
    """
    import difflib
    by_lower = {}
    for one in map(str, names):
        by_lower.setdefault(one.lower(), []).append(one)
    close = difflib.get_close_matches(str(name).lower(), list(by_lower), most)
    found = [one for lower in close for one in by_lower[lower]][:most]
    return "; did you mean %s?" % ", ".join(found) if found else ""
