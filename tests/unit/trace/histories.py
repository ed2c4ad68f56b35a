"""Makes histories of groups that never were: good ones here, and ways to spoil them in `spoils`.

A history is played view by view: everybody sends some runs, everybody delivers what the
guarantees say it must, cut into runs as it pleases, and the view ends by a join, a leave, a
crash, a partition or a merge.
"""

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from ringcast.trace.schema import Row

View = tuple[int, int]


@dataclass
class Ending:
    """How a view ends: who goes on together to where, who closes, who crashes."""

    onward: dict[View, list[int]] = field(default_factory=dict)
    closes: list[int] = field(default_factory=list)
    crashes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Sending:
    """One message, as its sender knows it."""

    seqno: int
    at: int


def digest_of(sender: int, seqno: int) -> int:
    """What stands for the crc32 of a payload."""
    return zlib.crc32(f"{sender}:{seqno}".encode())


def good_history(seed: int, *, views: int = 5, messages: int = 30, skips: bool = True) -> list[Row]:
    """Rows of a group of three to six members over some views, all guarantees kept."""
    return Player(random.Random(seed), messages, skips).play(views)


class Player:
    """Plays a history, view by view."""

    def __init__(self, rng: random.Random, messages: int, skips: bool) -> None:
        self.rng = rng
        self.messages = messages
        self.skips = skips
        self.now = 1_700_000_000_000_000 + rng.randrange(10**9)
        self.rows: list[Row] = []
        self.next: dict[int, int] = {}
        self.names: dict[int, str] = {}

    def play(self, views: int) -> list[Row]:
        members = [self._newcomer() for _ in range(self.rng.randint(3, 6))]
        current = {(1, members[0]): members}
        for _ in range(views - 1):
            current = self._step(current)
        for view, group in current.items():
            self._view(view, group, self._last(group))
        return self.rows

    def _step(self, current: dict[View, list[int]]) -> dict[View, list[int]]:
        """Play all views that exist side by side, and say which ones follow."""
        if len(current) > 1:
            return self._merge(current)
        ((view, members),) = current.items()
        following: dict[View, list[int]] = {}
        ending = self._ending(view, members)
        self._view(view, members, ending)
        for onward, group in ending.onward.items():
            joins = [self._newcomer()] if len(ending.onward) == 1 and len(members) < 6 else []
            following[onward] = group + joins
        return following

    def _merge(self, current: dict[View, list[int]]) -> dict[View, list[int]]:
        everybody = [member for group in current.values() for member in group]
        merged = max(number for number, _ in current) + 1, everybody[0]
        for view, group in current.items():
            self._view(view, group, Ending({merged: group}))
        return {merged: everybody}

    def _ending(self, view: View, members: list[int]) -> Ending:
        number = view[0] + 1
        what = self.rng.choice(["join", "leave", "crash", "crash", "partition"])
        if what == "partition" and len(members) >= 4:
            cut = self.rng.randint(1, len(members) - 1)
            halves = members[:cut], members[cut:]
            return Ending({(number, half[0]): half for half in halves})
        if what in ("leave", "crash") and len(members) >= 3:
            gone = self.rng.sample(members, self.rng.randint(1, len(members) - 2))
            stay = [member for member in members if member not in gone]
            ending = Ending({(number, stay[0]): stay})
            (ending.closes if what == "leave" else ending.crashes).extend(gone)
            return ending
        return Ending({(number, members[0]): members})

    def _last(self, members: list[int]) -> Ending:
        """The end of the history: most close, some are just not heard of any more."""
        silent = [member for member in members if self.rng.random() < 0.2]
        return Ending(closes=[m for m in members if m not in silent], crashes=silent)

    def _newcomer(self) -> int:
        address = self.rng.getrandbits(64)
        self.next[address] = self.rng.choice([1, 1, 2**32 - 7, 2**62 + 3])
        self.names[address] = f"m{len(self.names)}"
        return address

    def _view(self, view: View, members: list[int], ending: Ending) -> None:
        play = ViewPlay(self, view, members, ending)
        self.rows += play.rows()
        self.now = play.end + self.rng.randint(100, 5_000)


class ViewPlay:
    """One view: what is sent, who gets how much of it, and what the traces say."""

    def __init__(self, player: Player, view: View, members: list[int], ending: Ending) -> None:
        self.player, self.rng = player, player.rng
        self.view, self.members, self.ending = view, members, ending
        self.start = player.now
        self.delivered_at: dict[tuple[int, int], list[int]] = {}
        self.sendings = {sender: self._send(sender) for sender in members}
        self.made: list[Row] = []
        self.end = self.start

    def rows(self) -> list[Row]:
        for member in self.members:
            names = tuple(self.player.names[m] for m in self.members)
            row = self._row("view", member, None, self.start)
            self.made.append(row._replace(members=tuple(self.members), names=names))
        for sender in self.members:
            self._sent(sender)
            amounts = self._amounts(sender)
            for member in self.members:
                self._deliver(member, sender, self.sendings[sender][: amounts[member]])
            self._purge(sender, min(amounts.values()))
            self._chatter(sender)
        self.end = max(row.at for row in self.made) + 1
        for member in self.ending.closes:
            self.made.append(self._row("closed", member, None, self.end))
        return self._without_lost_tails()

    def _send(self, sender: int) -> list[Sending]:
        count = self.rng.choice([0, 1, 2, self.rng.randint(1, self.player.messages)])
        times = sorted(self.start + self.rng.randint(10, 20_000) for _ in range(count))
        first = self.player.next[sender]
        self.player.next[sender] += count
        return [Sending(first + index, at) for index, at in enumerate(times)]

    def _sent(self, sender: int) -> None:
        for run in self._cut(self.sendings[sender]):
            digest = sum(digest_of(sender, s.seqno) for s in run)
            at = run[-1].at
            row = self._row("sent", sender, sender, at)._replace(digest=digest, sent_at=at)
            self.made.append(_over(row, run))

    def _amounts(self, sender: int) -> dict[int, int]:
        """How many of the sender's messages each member delivers, as the guarantees allow."""
        total = len(self.sendings[sender])
        amounts = {member: self.rng.randint(0, total) for member in self.ending.crashes}
        amounts |= dict.fromkeys(self.ending.closes, total)
        for group in self.ending.onward.values():
            along = sender in group or sender in self.ending.closes
            amounts |= dict.fromkeys(group, total if along else self.rng.randint(0, total))
        if sender in self.ending.crashes:
            amounts |= {m: self.rng.randint(0, total) for m in self.ending.closes}
        return amounts

    def _deliver(self, member: int, sender: int, messages: list[Sending]) -> None:
        at, pos = self.start, 0
        times = self.delivered_at.setdefault((member, sender), [])
        for run in self._cut(messages):
            at = max(at, run[-1].at + self.rng.randint(50, 3_000))
            skip = self.player.skips and member != sender and self.rng.random() < 0.02
            digest = sum(digest_of(sender, s.seqno) for s in run)
            row = self._row("skipped" if skip else "delivered", member, sender, at)
            row = row._replace(pos=pos, digest=None if skip else digest, sent_at=run[0].at)
            self.made.append(_over(row, run))
            pos += len(run)
            times += [at] * len(run)

    def _purge(self, sender: int, amount: int) -> None:
        """Purge some of what all have delivered, each time after the last one did."""
        done = 0
        first = self.sendings[sender][0].seqno if self.sendings[sender] else 0
        while done < amount and self.rng.random() < 0.8:
            step = self.rng.randint(1, amount - done)
            done += step
            at = max(self.delivered_at[member, sender][done - 1] for member in self.members)
            low, high = first + done - 1, self.sendings[sender][-1].seqno
            row = self._row("purged", sender, sender, at + self.rng.randint(0, 500))
            row = row._replace(seqno=low - step + 1, count=step)
            self.made.append(row._replace(low=low, delivered=low, high=high))

    def _chatter(self, sender: int) -> None:
        """Rows that no guarantee looks at: requests, resent runs, acks, stalls, samples."""
        for message in self.sendings[sender]:
            peer = self.rng.choice(self.members)
            at = message.at + self.rng.randint(1, 900)
            if self.rng.random() < 0.1:
                asked = self._row("requested", peer, sender, at)._replace(peer=sender)
                again = self._row("resent", sender, sender, at + 90)._replace(peer=peer)
                self.made += [row._replace(seqno=message.seqno) for row in (asked, again)]
            if self.rng.random() < 0.1:
                row = self._row("blocked", sender, sender, at)
                self.made.append(row._replace(sent_at=message.at, peer=peer))
            if self.rng.random() < 0.1:
                high = message.seqno
                row = self._row("window", sender, sender, at)
                self.made.append(row._replace(low=high - 4, delivered=high - 1, high=high))

    def _cut(self, messages: list[Sending]) -> Iterator[list[Sending]]:
        start = 0
        while start < len(messages):
            count = self.rng.choice([1, 1, 2, 5, 9])
            yield messages[start : start + count]
            start += count

    def _without_lost_tails(self) -> list[Row]:
        """A member that crashed had not written its last rows yet."""
        cuts = {member: self.rng.randint(self.start, self.end) for member in self.ending.crashes}
        return [row for row in self.made if row.at <= cuts.get(row.member, row.at)]

    def _row(self, kind: str, member: int, sender: int | None, at: int) -> Row:
        return Row(member, *self.view, sender, kind, at=at)


def _over(row: Row, run: list[Sending]) -> Row:
    return row._replace(seqno=run[0].seqno, count=len(run), nbytes=100 * len(run))
