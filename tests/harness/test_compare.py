from __future__ import annotations

import fairopt as fo


def test_compare_default_is_every_registered_mechanism() -> None:
    frame = fo.compare(fo.papers.instance("drf-4.1"))
    assert {str(one) for name in fo.mechanisms.names() for one in fo.mechanisms.get(name).variants()} == set(
        frame.index
    )
    assert set(frame["status"].str.split(":").str[0]) == {"ok", "not applicable"}
