"""The whole hierarchy of errors, so that an `except` clause can say whose fault it is.

    RingcastError
    ├── ConfigError       the settings are wrong: nothing was started, nothing was lost
    ├── LocalError        the caller broke the contract
    │   ├── Closed        the group is closed, or was closed while the call waited
    │   ├── TooLarge      a message is larger than the stack can ever carry
    │   └── NotMember     a message to a process that is not in the view
    ├── Timeout           a wait with a bound reached it
    ├── JoinFailed        no group was joined; the sentence says what was tried
    ├── StateFailed       the group has a state, and no member could provide it
    └── RemoteError       a peer sent something wrong: counted and dropped, never seen by users
        ├── Malformed     bytes that are not a frame
        ├── WrongVersion  a frame of another version of the protocol
        ├── WrongGroup    a frame of another group
        ├── NotForMe      a frame for another member
        ├── Sealed        a datagram of a closed group, at a member without a key
        ├── Unsealed      a datagram that is not sealed, in a closed group
        ├── WrongKey      a sealed datagram that no key of this member opens
        └── Replayed      a sealed datagram that was opened before

Loss, suspicion and partition are events, not errors.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class RingcastError(Exception):
    """The root: catches everything that Ringcast raises on purpose."""


class ConfigError(RingcastError, ValueError):
    """The settings are wrong; the sentence says which and what to write instead."""


class LocalError(RingcastError):
    """The caller broke the contract."""


class Closed(LocalError):
    """The group is closed, or was closed while the call waited."""


class TooLarge(LocalError, ValueError):
    """A message is larger than the stack can ever carry; the sentence has both numbers."""


class NotMember(LocalError, ValueError):
    """A message is addressed to a process that is not in the view."""


class Timeout(RingcastError, TimeoutError):
    """A wait with a bound reached it; the sentence says what it waited for."""

    def __init__(self, sentence: str, *, sent: int = 0, waits_for: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.sent = sent
        """Of messages to be sent: how many were, before the time was over."""
        self.waits_for = waits_for
        """The names of the members that did not take what was sent before, as far as known."""


class JoinFailed(RingcastError):
    """No group was joined; the sentence says what was tried."""


class StateFailed(RingcastError):
    """The group has a state, and no member could provide it; the sentence says who tried."""


class RemoteError(RingcastError):
    """A peer sent something that is not right: counted and dropped."""

    reason = "remote"
    """The name of the counter that this error raises."""


class Malformed(RemoteError):
    """Bytes that are not a frame."""

    reason = "malformed"


class WrongVersion(RemoteError):
    """A frame of another version of the protocol."""

    reason = "wrong_version"


class WrongGroup(RemoteError):
    """A frame of another group."""

    reason = "wrong_group"


class NotForMe(RemoteError):
    """A frame for another member."""

    reason = "not_for_me"


class Sealed(RemoteError):
    """A datagram of a closed group, at a member without a key."""

    reason = "sealed"


class Unsealed(RemoteError):
    """A datagram that is not sealed, in a closed group."""

    reason = "unsealed"


class WrongKey(RemoteError):
    """A sealed datagram that no key of this member opens."""

    reason = "wrong_key"


class Replayed(RemoteError):
    """A sealed datagram that was opened before."""

    reason = "replayed"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about a word that does not exist: the closest one that does."""
    lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), lower, 1, 0.65)  # Three letters, two of them swapped.
    return f"; did you mean {lower[close[0]]}?" if close else ""
