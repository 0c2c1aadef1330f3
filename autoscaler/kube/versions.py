"""The newest version seen of each object, deletions included, in bounded memory.

A list at version v speaks for every change up to v, so only versions above that floor need remembering per object: a table of all
objects would cost some 25 MB for 150,000 pods, and tombstones would grow without end on a watch that never breaks.
Comparing versions as numbers is what etcd has always made true and KEP-5504 made official.
"""


class Versions:
    """Newest versions in two generations.

    When the young one is full the old one is dropped and the floor rises to its highest version: nothing that old can be
    news, since a watch brings a kind's changes in the order of their versions.
    """

    def __init__(self, *, floor: int, capacity: int) -> None:
        self._floor = floor
        self._capacity = capacity
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def newest(self, key: str) -> int:
        """The newest version known of this object, at least the floor."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key, self._floor)
        return max(self._floor, found)

    def record(self, key: str, version: int) -> None:
        """Remember a version that was accepted."""
        self._young[key] = version
        if len(self._young) > self._capacity:
            self._floor = max(self._floor, max(self._old.values(), default=self._floor))
            self._old, self._young = self._young, {}


def version_number(resource_version: str) -> int:
    """A resourceVersion as a number, -1 when it is none (then only the order of arrival counts)."""
    try:
        return int(resource_version)
    except ValueError:
        return -1
