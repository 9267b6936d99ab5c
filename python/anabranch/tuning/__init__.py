"""``anabranch tune`` and ``anabranch strategies`` measure a script under different settings, on its own data."""
