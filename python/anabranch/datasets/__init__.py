"""Readers of data sets on this machine. They download nothing."""
from . import cifar, common, criteo, imdb, imikolov, mnist, movielens, r_packages, uci_housing

__all__ = ["cifar", "common", "criteo", "imdb", "imikolov", "mnist", "movielens", "r_packages", "uci_housing"]
