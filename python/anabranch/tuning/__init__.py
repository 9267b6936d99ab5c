"""``anabranch tune`` and ``anabranch strategies``: measure a script under other settings, on its own data."""
