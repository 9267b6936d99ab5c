"""``anabranch tune``: the steps of a script, measured with other settings on the script's own data."""
