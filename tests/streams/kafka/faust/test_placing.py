"""Partitions stay where their state is, and each worker has as many as any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.faust.placing import NOTHING, Told, cost_of, placed, warm_duties


def told(owned: Mapping[str, object], held: Mapping[str, Mapping[int, int]] | None = None) -> dict[str, Told]:
    held = held or {}
    return {one: Told(one, frozenset(mine), held.get(one, {})) for one, mine in owned.items()}  # type: ignore[call-overload]


def shares(workers: Mapping[str, Told], partitions: int) -> dict[str, set[int]]:
    found = placed(range(partitions), dict.fromkeys(workers, 0), cost_of(workers))
    return {one: {partition for partition, owner in found.items() if owner == one} for one in workers}


def test_who_has_partitions_keeps_them() -> None:
    owned = {"a": {0, 2, 5}, "b": {1, 3, 4}}
    assert shares(told(owned), 6) == owned


def test_one_more_worker_takes_its_share_and_nothing_else_moves() -> None:
    owned = {"a": {0, 1, 2, 3}, "b": {4, 5, 6, 7}, "c": set[int]()}
    now = shares(told(owned), 8)
    assert sorted(map(len, now.values())) == [2, 3, 3]
    assert now["a"] <= owned["a"]
    assert now["b"] <= owned["b"]


def test_a_worker_that_comes_back_gets_what_is_on_its_disk() -> None:
    """The other one, which had all of it meanwhile, keeps what it had before."""
    held = {"a": dict.fromkeys(range(8), 900), "b": dict.fromkeys(range(4, 8), 880)}
    assert shares(told({"a": range(8), "b": ()}, held), 8) == {"a": {0, 1, 2, 3}, "b": {4, 5, 6, 7}}


def test_what_a_lost_worker_had_goes_to_who_has_copies() -> None:
    held = {"a": dict.fromkeys((0, 1, 6), 10), "b": dict.fromkeys((2, 3, 7), 10)}
    assert shares(told({"a": {0, 1}, "b": {2, 3}}, held), 6)["a"] >= {0, 1}
    three = told({"a": {0, 1, 2}, "b": {3, 4, 5}}, {"a": {8: 10, 6: 10}, "b": {7: 10}})
    now = shares(three, 9)
    assert now["a"] >= {0, 1, 2, 6, 8}
    assert now["b"] >= {3, 4, 5, 7}


def test_newer_state_is_preferred_to_older() -> None:
    held = {"a": {0: 1_000_000}, "b": {0: 10, 1: 5}, "c": {1: 6}}
    now = shares(told({"a": (), "b": (), "c": ()}, held), 3)
    assert (now["a"], now["c"]) == ({0}, {1})


def test_who_has_only_begun_to_read_gives_way_to_who_holds_nearly_all() -> None:
    held = {"a": {0: 3, 1: 1_000_000}, "b": {0: 999_000}}
    assert shares(told({"a": {0, 1}, "b": ()}, held), 2) == {"a": {1}, "b": {0}}


def test_balance_comes_first() -> None:
    """However much one of them holds."""
    held = {"a": dict.fromkeys(range(9), 100)}
    assert sorted(map(len, shares(told({"a": range(9), "b": (), "c": ()}, held), 9).values())) == [3, 3, 3]


def test_two_that_believe_to_have_the_same_share_it() -> None:
    now = shares(told({"a": range(4), "b": range(4)}), 4)
    assert sorted(map(len, now.values())) == [2, 2]


WORKERS = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.tuples(st.sets(st.integers(0, 15)), st.dictionaries(st.integers(0, 15), st.integers(0, 1 << 40))),
    min_size=1,
)


@given(WORKERS, st.integers(1, 16))
def test_every_partition_has_one_worker_and_none_has_two_more_than_another(
    workers: dict[str, tuple[set[int], dict[int, int]]], partitions: int
) -> None:
    members = {one: Told(one, owned, held) for one, (owned, held) in workers.items()}
    found = placed(range(partitions), dict.fromkeys(members, 0), cost_of(members))
    assert found.keys() == set(range(partitions))
    counts = Counter(dict.fromkeys(members, 0)) + Counter(found.values())
    loads = [counts[one] for one in members]
    assert max(loads) - min(loads) <= 1
    assert found == placed(range(partitions), dict.fromkeys(reversed(list(members)), 0), cost_of(members))


@given(WORKERS, st.integers(1, 16))
def test_what_is_placed_stays_where_it_is(
    workers: dict[str, tuple[set[int], dict[int, int]]], partitions: int
) -> None:
    """Those who have it hold the newest of it by then: nothing moves when somebody asks again."""
    members = {one: Told(one, owned, held) for one, (owned, held) in workers.items()}
    found = placed(range(partitions), dict.fromkeys(members, 0), cost_of(members))
    newest = 1 << 41
    settled = {
        one: Told(
            one,
            {p for p, owner in found.items() if owner == one},
            {**members[one].held, **{p: newest for p, owner in found.items() if owner == one}},
        )
        for one in members
    }
    assert placed(range(partitions), dict.fromkeys(members, 0), cost_of(settled)) == found


@given(st.integers(2, 6), st.integers(1, 24), st.integers(1, 3))
def test_a_lost_workers_partitions_are_taken_over_by_who_has_copies(count: int, partitions: int, copies: int) -> None:
    """All of them, and each of the others has as many as any then."""
    names = "abcdef"[:count]
    nobody = {one: Told(one, (), {}) for one in names}
    owners = placed(range(partitions), dict.fromkeys(names, 0), cost_of(nobody))
    duties = warm_duties(owners, nobody, copies)
    assert all(owners[partition] != one for one, kept in duties.items() for partition in kept)
    each = Counter(partition for kept in duties.values() for partition in kept)
    assert set(each.values()) == {min(copies, count - 1)}
    for lost in names:
        left = {
            one: Told(
                one,
                {p for p, owner in owners.items() if owner == one},
                {
                    p: 100 if owners[p] == one else 90
                    for p in range(partitions)
                    if owners[p] == one or p in duties[one]
                },
            )
            for one in names
            if one != lost
        }
        cost = cost_of(left)
        now = placed(range(partitions), dict.fromkeys(left, 0), cost)
        assert all(cost(partition, owner) < NOTHING for partition, owner in now.items())


def test_who_has_a_copy_keeps_it() -> None:
    owners = {0: "a", 1: "a", 2: "b", 3: "c", 4: "d"}
    members = {one: Told(one, (), held) for one, held in {"a": {}, "b": {0: 5}, "c": {1: 5}, "d": {}}.items()}
    duties = warm_duties(owners, members, 1)
    assert 0 in duties["b"]
    assert 1 in duties["c"]
