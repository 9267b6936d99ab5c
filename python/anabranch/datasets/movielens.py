"""MovieLens 1M: ratings of films. A sample contains a person, a film and a rating. Ratings from 1 to 5 are scaled to
the range from -3 to 5.

File: ``ml-1m.zip``. Harper and Konstan, ACM Transactions on Interactive Intelligent Systems 5 (2015),
DOI 10.1145/2827872.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy

from ..fluid.errors import InvalidValue
from ..fluid.reading.test_data import held_out
from . import archives

__all__ = ["train", "test", "get_movie_title_dict", "max_movie_id", "max_user_id", "age_table", "movie_categories",
           "max_job_id", "user_info", "movie_info", "MovieInfo", "UserInfo"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"

#: The ages that the groups of people begin with.
age_table = [1, 18, 25, 35, 45, 50, 56]
_FILE = "ml-1m.zip"
_TESTS = 0.1
_SEED = 0
_TITLE = re.compile(r"(.*)\(\d+\)$")


class MovieInfo:
    """A film.

    >>> MovieInfo(1, ["Comedy"], "Toy Story ")
    <MovieInfo id(1), title(Toy Story ), categories(['Comedy'])>
    """

    def __init__(self, index: int, categories: list[str], title: str) -> None:
        self.index, self.categories, self.title = int(index), categories, title

    def value(self) -> list[Any]:
        """list: number, numbers of its categories, numbers of the words of its title."""
        return [self.index, [movie_categories()[c] for c in self.categories],
                [get_movie_title_dict()[w.lower()] for w in self.title.split()]]

    def __repr__(self) -> str:
        return "<MovieInfo id(%d), title(%s), categories(%s)>" % (self.index, self.title, self.categories)


class UserInfo:
    """A person.

    >>> UserInfo(1, "F", 18, 10).value()
    [1, 1, 1, 10]
    """

    def __init__(self, index: int, gender: str, age: int, job_id: int) -> None:
        self.index, self.is_male = int(index), gender == "M"
        self.age, self.job_id = age_table.index(int(age)), int(job_id)

    def value(self) -> list[int]:
        """list of int: number, 0 for a man and 1 for a woman, number of the age in ``age_table``, number of the job."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __repr__(self) -> str:
        return "<UserInfo id(%d), gender(%s), age(%d), job(%d)>" % (
            self.index, "M" if self.is_male else "F", age_table[self.age], self.job_id)


class _Tables(NamedTuple):
    movies: dict[int, MovieInfo]
    users: dict[int, UserInfo]
    categories: dict[str, int]
    words: dict[str, int]


def _rows(archive: Any, name: str, fields: int) -> Iterator[list[str]]:
    for number, line in enumerate(archives.lines(archives.member(archive, "ml-1m/" + name), "latin-1"), 1):
        row = line.split("::")
        if len(row) != fields:
            raise InvalidValue("%s, line %d: must have %d fields, got %d" % (name, number, fields, len(row)))
        yield row


@functools.lru_cache(maxsize=1)
def _read(path: str) -> _Tables:
    tables = _Tables({}, {}, {}, {})
    with archives.opened(path) as archive:
        for index, name, categories in _rows(archive, "movies.dat", 3):
            fits = _TITLE.match(name)
            film = MovieInfo(int(index), categories.split("|"), fits.group(1) if fits else name)
            tables.movies[film.index] = film
            for category in film.categories:
                tables.categories.setdefault(category, len(tables.categories))
            for word in film.title.split():
                tables.words.setdefault(word.lower(), len(tables.words))
        for index, gender, age, job, _ in _rows(archive, "users.dat", 5):
            tables.users[int(index)] = UserInfo(int(index), gender, int(age), int(job))
    return tables


def _tables() -> _Tables:
    return _read(archives.find("movielens", _FILE))


def get_movie_title_dict() -> dict[str, int]:
    """dict: word of a title, in lowercase -> number."""
    return _tables().words


def movie_categories() -> dict[str, int]:
    """dict: category -> number."""
    return _tables().categories


def movie_info() -> dict[int, MovieInfo]:
    """dict: number -> film."""
    return _tables().movies


def user_info() -> dict[int, UserInfo]:
    """dict: number -> person."""
    return _tables().users


def max_movie_id() -> int:
    """int: the largest number of a film."""
    return max(_tables().movies)


def max_user_id() -> int:
    """int: the largest number of a person."""
    return max(_tables().users)


def max_job_id() -> int:
    """int: the largest number of a job."""
    return max(user.job_id for user in _tables().users.values())


def _reader(of_test: bool) -> Callable[[], Iterator[Any]]:
    def read():
        tables, draws = _tables(), numpy.random.RandomState(_SEED)
        with archives.opened(archives.find("movielens", _FILE)) as archive:
            for user, movie, mark, _ in _rows(archive, "ratings.dat", 4):
                if (draws.random_sample() < _TESTS) == of_test:
                    person, film = tables.users[int(user)], tables.movies[int(movie)]
                    yield [*person.value(), *film.value(), [float(mark) * 2 - 5.0]]
    return read


def train() -> Callable[[], Iterator[Any]]:
    """A reader of about 90 % of the ratings: person (4 numbers), film (number, categories, title), [rating]."""
    return _reader(False)


@held_out
def test() -> Callable[[], Iterator[Any]]:
    """A reader of the other ratings, like :func:`train`."""
    return _reader(True)
