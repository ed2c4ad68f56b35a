"""Memory and descriptors over time, and what counts as growth."""

import os

from ringcast.soak.vitals import MEGABYTE, Sign, Vitals, read_sign


def vitals(*rows: tuple[float, int]) -> Vitals:
    """One process with this many megabytes and descriptors, row by row."""
    told = Vitals(["a"])
    for number, (megabytes, files) in enumerate(rows):
        label = "start" if number == 0 else f"minute {number}"
        told.rows.append((label, {"a": Sign(int(megabytes * MEGABYTE), files)}))
    return told


def growth(told: Vitals) -> list[str]:
    return list(told.growth(16 * MEGABYTE, 4, warm=1))


def test_what_stays_is_no_growth() -> None:
    assert growth(vitals((100, 10), (130, 14), (135, 14), (131, 10))) == []
    assert growth(vitals((100, 10), (130, 10), (146, 14))) == []
    assert growth(vitals((100, 10))) == [], "too short to tell"


def test_memory_that_grows_after_the_first_minute() -> None:
    assert growth(vitals((100, 10), (130, 10), (146.5, 10))) == [
        "the memory of a grew by 16.5 MB since minute 1: at most 16 are allowed"
    ]


def test_descriptors_that_were_not_there_at_the_beginning() -> None:
    assert growth(vitals((100, 10), (130, 20), (130, 15))) == [
        "a has 5 descriptors more than at the beginning: at most 4"
    ]


def test_the_signs_of_a_process() -> None:
    before = read_sign(os.getpid())
    assert before.memory > MEGABYTE
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    assert read_sign(os.getpid()).files == before.files + 5
    for fd in fds:
        os.close(fd)


def test_vitals_have_a_table_and_plain_data() -> None:
    told = vitals((100, 10), (130.25, 12))
    assert told.table()[-1] == "minute 1       130.2      12"
    assert told.plain()[0] == {
        "at": "start",
        "members": {"a": {"memory": 100 * MEGABYTE, "files": 10}},
    }
