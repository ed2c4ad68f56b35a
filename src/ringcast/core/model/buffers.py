"""Memory for large messages that the owner of a stack lends: a core asks for none by itself."""

from __future__ import annotations

from typing import Protocol


class Buffer(Protocol):
    """Memory for one message. A view of any part of it keeps it from being lent again;
    it needs no return."""

    @property
    def view(self) -> memoryview:
        """All of it; what is in there now means nothing."""
        ...

    def prepare(self, up_to: int) -> None:
        """This many bytes from its beginning are about to be written."""
        ...


class Buffers(Protocol):
    """The owner of such memory, which lends it."""

    def lend(self, size: int) -> Buffer | None:
        """Memory for a message of this size, taken only as it is filled; None to let it grow."""
        ...

    def tidy(self) -> bool:
        """Give back what was not needed for a while; whether to call this again after a while."""
        ...


class NoBuffers:
    """No memory is lent."""

    def lend(self, size: int) -> Buffer | None:
        """None."""
        return None

    def tidy(self) -> bool:
        """Nothing to do, now or later."""
        return False
