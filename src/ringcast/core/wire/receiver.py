"""The receiver: datagrams in, frames with their source out.

Each datagram takes the first way that fits: direct placement, the fast path for a run that
continues the open one, that for an ack, that for a new run, that for a run to this member, the
codec. Datagrams that the kernel received as one buffer are read run by run. A run stays open while
the next datagrams continue it, so that the stack takes one frame for many datagrams. In a closed
group a datagram is opened before all of these, and one that cannot be opened goes no further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ringcast.core.model.address import Address
from ringcast.core.model.view import ViewId
from ringcast.core.wire.codec import decode, decode_frame
from ringcast.core.wire.fastpath import ACK_DATAGRAM_SIZE, AckReader, RunReader, read_pair
from ringcast.core.wire.frames import Data, Frame, FramePiece
from ringcast.core.wire.layout import HEADER_SIZE
from ringcast.core.wire.packed import PackedReader
from ringcast.core.wire.pieces import PieceJoiner
from ringcast.core.wire.placement import PLACED, Placement
from ringcast.core.wire.seal import Seal
from ringcast.core.wire.segments import Received, Segments, one_by_one
from ringcast.errors import RemoteError, Replayed


class Receiver:
    """Reads one member's datagrams, and hands the frames of each to `take` with their source."""

    __slots__ = (
        "_acks",
        "_counters",
        "_group",
        "_me",
        "_packed",
        "_pieces",
        "_runs",
        "_seal",
        "_take",
        "placement",
        "refused",
    )

    def __init__(
        self,
        group: int,
        me: Address,
        take: Callable[[Sequence[Frame], Address], None],
        counters: Counter[str],
        seal: Seal | None = None,
    ) -> None:
        self._group = group
        self._me = me
        self._take = take
        self._counters = counters
        self._seal = seal
        self._runs = RunReader(group, me)
        self._acks = AckReader(group, me)
        self._packed = PackedReader(group)
        self._pieces = PieceJoiner()
        self.placement = Placement(group)
        self.placement.is_used = seal is not None
        """Where the next datagram may be written; PLACED stands for one that was."""
        self.refused = 0
        """Datagrams that were not right; repetitions, which a network may make, do not count."""

    def receive(self, datagrams: Iterable[Received], view: ViewId) -> None:
        """Read all datagrams; `view` is the one that is installed. A datagram that is not right is
        counted and dropped.

        Each is done with when the next is asked for: what is kept of a memoryview is copied.
        """
        if self._seal is not None:
            datagrams = self._opened(datagrams, self._seal)
        extend = self._runs.extend
        for datagram in datagrams:
            # Most datagrams continue the open run; one that was placed is too short for that.
            if isinstance(datagram, Segments):
                self._read_segments(datagram, view)
            elif not extend(datagram):
                self._read(datagram, view)
            del datagram  # Its memory is for the next one, which may be read only now.
        if self._runs.run is not None or self._packed.runs:
            self._take_run()

    def _opened(self, datagrams: Iterable[Received], seal: Seal) -> Iterator[memoryview]:
        place = self.placement.place
        for datagram in one_by_one(datagrams):
            try:
                opened = seal.open(datagram)
            except RemoteError as error:
                self._refuse(error)
            else:
                yield PLACED if place(opened) else opened

    def _read(self, datagram: bytes | memoryview, view: ViewId) -> None:
        """Read a datagram that does not continue the open run."""
        runs, placement = self._runs, self.placement
        if datagram is PLACED:
            if not placement.extend(runs.run):
                run = placement.start(view)
                self._take_run()
                runs.run = run
            if placement.advertised is None:
                self._take_run()  # It was the last fragment of its message.
        elif len(datagram) == ACK_DATAGRAM_SIZE and self._take_ack(datagram):
            return
        elif not self._packed.read(datagram, view):
            if runs.run is not None or self._packed.runs:
                self._take_run()
            is_run = len(datagram) > HEADER_SIZE and datagram[HEADER_SIZE] == Data.code
            if not (is_run and runs.start(datagram, view)):
                self._take_datagram(datagram)
            elif placement.is_used and runs.begins_message:
                self._take_run()  # So that the next one can be placed.

    def _read_segments(self, segments: Segments, view: ViewId) -> None:
        """Read segments run by run: each run's first by itself, and those that continue it at
        once."""
        data, size = segments.data, segments.size
        at = self._packed.read_train(data, size, view)
        while at < len(data):
            joined = self._runs.extend_by(data, at, size)
            at += joined * size
            if not joined:
                one = data[at : at + size]
                if not self._runs.extend(one):
                    self._read(one, view)
                at += size

    def _take_run(self) -> None:
        runs = self._runs
        run = runs.run
        if self._packed.runs:
            self._take_packed()
        if run is not None:
            runs.run = None
            self._take((run,), run.origin)

    def _take_packed(self) -> None:
        runs, self._packed.runs = self._packed.runs, []
        for run in runs:
            self._take((run,), run.origin)

    def _take_ack(self, datagram: bytes | memoryview) -> bool:
        """Take a datagram that holds one ack; False if it does not."""
        ack = self._acks.read(datagram)
        if ack is None:
            return False
        if self._runs.run is not None or self._packed.runs:
            self._take_run()
        self._take((ack[1],), ack[0])
        return True

    def _take_datagram(self, datagram: bytes | memoryview) -> None:
        pair = read_pair(datagram, self._group, self._me)
        if pair is not None:
            self._take((pair[1],), pair[0])
            return
        try:
            source, frames = decode(datagram, self._group, self._me)
            if len(frames) == 1 and isinstance(frames[0], FramePiece):
                whole = self._pieces.add(source, frames[0])
                frames = [] if whole is None else [decode_frame(whole)]
            self._take(frames, source)
        except RemoteError as error:
            self._refuse(error)

    def _refuse(self, error: RemoteError) -> None:
        self._counters[f"dropped_{error.reason}"] += 1
        self.refused += not isinstance(error, Replayed)
