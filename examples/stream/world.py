"""A shop whose visitors, items and tastes change from minute to minute.

Each minute brings new items and new visitors, whose ids are hashes of 64 bits. An item is shown often when it is new.
Its appeal drifts, and so do the tastes of the groups of visitors for the topics of items. The chance of each click is
known, so the AUC of a perfect model is known as well.
"""
import numpy as np

GROUPS, TOPICS = 20, 10
NEW_ITEMS, NEW_REGULARS = 40, 1500     # of a minute
LIFE = 5.0                             # mean age, in minutes, of the items and the regular visitors of a minute
RETURN = 0.6                           # share of visits by regular visitors; the others come once
DRIFT = 0.25                           # of appeals and tastes in a minute, in standard deviations

#: Columns of the ids.
SLOTS = ("visitor", "item", "topic", "taste")


def hashed(slot, *parts):
    """Ids of 64 bits (splitmix64): different parts of different slots have different ids."""
    value = np.uint64(SLOTS.index(slot) + 1)
    with np.errstate(over="ignore"):
        for part in parts:
            value = value * np.uint64(0x9E3779B97F4A7C15) + np.asarray(part).astype(np.uint64)
            value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            value = value ^ (value >> np.uint64(31))
    return value.astype(np.int64)


class World:
    """The shop, minute after minute; the same seed gives the same visits.

    Args:
        seed (int): seed of everything.
        visits (int): number of visits in a minute.
    """

    def __init__(self, seed, visits):
        self._random, self._visits = np.random.RandomState(seed), visits
        self.minute = 0
        self._tastes = self._random.normal(0, 1, (GROUPS, TOPICS))
        self._topics, self._appeals = np.empty(0, int), np.empty(0)
        for _ in range(int(3 * LIFE)):     # the items that are there at the start
            self._add_items()

    def _add_items(self):
        self._topics = np.append(self._topics, self._random.randint(0, TOPICS, NEW_ITEMS))
        self._appeals = np.append(self._appeals, self._random.normal(0, 1, NEW_ITEMS))

    def visit(self):
        """The visits of the next minute: (ids of each visit, one column per slot; the chance of each click)."""
        random, n = self._random, self._visits
        self.minute += 1
        self._tastes = self._drifted(self._tastes)
        self._appeals = self._drifted(self._appeals)
        self._add_items()
        item = self._recent(len(self._topics), LIFE * NEW_ITEMS)
        regular = self._recent(self.minute * NEW_REGULARS + 10 * NEW_REGULARS, LIFE * NEW_REGULARS)
        visitor = np.where(random.rand(n) < RETURN, regular, 2 ** 40 + self.minute * n + np.arange(n))
        ids = hashed("visitor", visitor)
        group, topic = ids % GROUPS, self._topics[item]
        logit = -1.5 + self._appeals[item] + self._tastes[group, topic] + (ids % 1009 / 1009.0 - 0.5)
        columns = [ids, hashed("item", item), hashed("topic", topic), hashed("taste", group, topic)]
        return np.stack(columns, 1), 1 / (1 + np.exp(-logit))

    def click(self, chance):
        """Whether each visit ends with a click."""
        return (self._random.rand(len(chance)) < chance).astype("float32")

    def _drifted(self, values):
        """Values that have changed, and vary as much as before."""
        return np.sqrt(1 - DRIFT ** 2) * values + self._random.normal(0, DRIFT, values.shape)

    def _recent(self, count, mean_age):
        """Numbers below ``count``; high ones are more frequent."""
        ages = self._random.exponential(mean_age, self._visits).astype(int)
        return count - 1 - np.minimum(ages, count - 1)
