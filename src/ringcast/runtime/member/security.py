"""Whether a member's group is open or closed, and what follows from it for stack and network."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ringcast.closed.keys import Keys, load_keys
from ringcast.closed.seal import GroupSeal
from ringcast.core.model.address import Address
from ringcast.core.wire.codec import group_id
from ringcast.core.wire.placement import Placement
from ringcast.core.wire.seal import Seal
from ringcast.errors import LocalError
from ringcast.runtime.net.transport import Transport
from ringcast.spec import StackSpec


class Credentials(NamedTuple):
    """The keys that a member was given, and the file that they are from."""

    keys: Keys = ()
    path: Path | None = None


NO_KEYS = Credentials()


class Security:
    """The seal of one life of a member, if its group is closed."""

    def __init__(
        self,
        credentials: Credentials,
        group: str,
        me: Address,
        transport: Transport,
        has_tls: bool = False,
        spec: StackSpec | None = None,
    ) -> None:
        """spec: a protocol of it may seal datagrams. Opens the transport. Raises ConfigError."""
        self._has_tls = has_tls
        self._path = credentials.path
        self._transport = transport
        self.group_seal = GroupSeal(credentials.keys, group, me) if credentials.keys else None
        """That of the keys."""
        self.seal: Seal | None = self.group_seal
        """What seals and opens every datagram: a key, or a protocol of the stack."""
        if spec is not None:
            self.seal = spec.make_seal(group, me, self.group_seal)
        if self.group_seal is None:
            transport.open(me, group_id(group))
        else:
            transport.secure(self.group_seal)
            transport.open(me, self.group_seal.tags[0])

    def use(self, placement: Placement) -> None:
        """Let the transport place datagrams; a sealed one has to be opened first."""
        if self.seal is None:
            self._transport.use(placement)

    def reload(self) -> None:
        """Read the key file anew. Raises ConfigError, and keeps the keys then."""
        if self.group_seal is None or self._path is None:
            raise LocalError("this member has no key file: join with key_file= to reload its keys")
        self.group_seal.use(load_keys(self._path))
        self._transport.secure(self.group_seal)

    def facts(self) -> dict[str, object]:
        """Open or closed, and the ids of the keys, the one that seals first."""
        return {
            "is_closed_group": self.seal is not None or self._has_tls,
            "key_ids": [] if self.group_seal is None else list(self.group_seal.key_ids),
        }

    def peer_key_ids(self, members: Iterable[Address]) -> dict[str, str]:
        """By which key each of these members has sealed last, as far as they were heard."""
        if self.group_seal is None:
            return {}
        used = {str(member): self.group_seal.key_id_of(member) for member in members}
        return {member: key_id for member, key_id in used.items() if key_id is not None}

    def __str__(self) -> str:
        if self.seal is None and self._has_tls:
            return "the group is closed (TLS certificates)"
        if self.seal is None:
            return "the group is open: any process that reaches it may join, read and send"
        if self.group_seal is None:
            return "the group is closed (a protocol of the stack seals every datagram)"
        first, *others = self.group_seal.key_ids
        opens = f", also opens {', '.join(others)}" if others else ""
        return f"the group is closed (key id {first}{opens})"
