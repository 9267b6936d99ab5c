"""What :mod:`anabranch.legacy` does. Nothing is changed by importing this package."""
