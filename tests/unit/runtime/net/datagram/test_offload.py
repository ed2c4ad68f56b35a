"""Neighbours of one size and target leave together, in order, within the kernel's bounds."""

from hypothesis import given
from hypothesis import strategies as st

from ringcast.core.model.address import Address
from ringcast.core.wire.outbox import TRAIN_MAX, TRAIN_SEGMENTS_MAX, Datagram
from ringcast.runtime.net.datagram.offload import grouped

sizes = st.sampled_from([40, 1_000, 1_472, 30_000, 60_000])
targets = st.sampled_from([None, Address(1), "10.0.0.1:7700"])


@given(st.lists(st.builds(lambda t, n: Datagram(t, [bytes(n)], n), targets, sizes), max_size=200))
def test_groups_are_what_the_kernel_can_cut(datagrams: list[Datagram]) -> None:
    groups = list(grouped(datagrams))
    assert [datagram for _, group in groups for datagram in group] == datagrams
    for target, group in groups:
        assert {datagram.target for datagram in group} == {target}
        assert 0 < len(group) <= TRAIN_SEGMENTS_MAX
        assert len(group) == 1 or sum(datagram.nbytes for datagram in group) <= TRAIN_MAX
        assert all(datagram.nbytes == group[0].nbytes for datagram in group[:-1])
        assert group[-1].nbytes <= group[0].nbytes


def test_a_long_run_takes_few_calls() -> None:
    datagrams = [Datagram(None, [bytes(1_472)], 1_472)] * 440
    assert [len(group) for _, group in grouped(datagrams)] == [44] * 10
    assert [len(group) for _, group in grouped(datagrams, 20_000)] == [13] * 33 + [11]
