"""Pools of memory as tiles: what is not known of one is unknown there and nowhere else."""

from __future__ import annotations

from gcspy_drivers.hotspot.spaces.pool_space import Pool, PoolSpace

from gcspy_server.api import Server


def test_what_is_not_known_of_a_pool_is_unknown() -> None:
    pools = PoolSpace(Server("x", events=["Clock"]), ["eden", "old", "metaspace"])
    found = {}
    for given in (
        [Pool("eden", 5, 10, 20), Pool("old", 7, None, 30), Pool("metaspace", None, 9, None)],
        [Pool("eden", 1, 2, 3), Pool("old", 4, 5, 6), Pool("metaspace", 7, 8, 9)],
    ):
        pools.fill(given, "a note")
        assert pools.space.info == "a note"
        for stream in pools.space.streams:
            known = [True] * 3 if stream.known is None else stream.known.tolist()
            found[stream.name] = [
                value if there else None
                for value, there in zip(stream.data.tolist(), known, strict=True)
            ]
        if given[1].committed is None:
            assert found == {
                "Used": [5, 7, None],
                "Committed": [10, None, 9],
                "Most": [20, 30, None],
                "Filled": [5, None, None],
            }
    assert found == {
        "Used": [1, 4, 7],
        "Committed": [2, 5, 8],
        "Most": [3, 6, 9],
        "Filled": [1, 4, 7],
    }
