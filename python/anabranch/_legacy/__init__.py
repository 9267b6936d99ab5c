"""The implementation of :mod:`anabranch.legacy`. Nothing is changed by importing this package."""
