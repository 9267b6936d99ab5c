"""Names that were probably meant."""


def near(name, names, most=3):
    """str: "; did you mean fc?" where ``names`` has something like ``name``, else "". It names the ``most`` likeliest.

    >>> near("rleu", ["relu", "tanh"]), near("x", ["relu"])
    ('; did you mean relu?', '')
    """
    import difflib
    found = difflib.get_close_matches(str(name), [str(one) for one in names], most)
    return "; did you mean %s?" % ", ".join(found) if found else ""
