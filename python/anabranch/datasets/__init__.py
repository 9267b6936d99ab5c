"""Readers of data sets that are on this machine; nothing is downloaded."""
from . import cifar, common, criteo, imdb, imikolov, mnist, movielens, r_packages, uci_housing

__all__ = ["cifar", "common", "criteo", "imdb", "imikolov", "mnist", "movielens", "r_packages", "uci_housing"]
