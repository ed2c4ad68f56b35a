"""What a gateway is asked to be, and where its clients find it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ringcast.errors import ConfigError
from ringcast.runtime.ops.run_directory import run_directory


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The group and the stack of a gateway. Clients that ask for the same share one."""

    group: str
    spec: str
    """The stack as TOML."""
    timeout: float = 30.0
    """Seconds to join, to find receivers, and that the slowest of them may take nothing at all."""
    idle: float = 60.0
    """Seconds without a client after which it leaves. Longer saves a view change where work comes
    now and then; shorter keeps the group small."""
    min_receivers: int = 1
    """How many members besides gateways there must be for a message to count as delivered."""

    key_file: str = ""
    """The name of the key file of a closed group; empty for what the environment says."""

    def to_json(self) -> str:
        """The settings as a gateway reads them; equal settings have equal texts."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The settings from their text. Raises ConfigError."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"these are not settings of a gateway: {error}") from None

    def path_base(self) -> Path:
        """Where the gateway with these settings is, without an ending. Raises ConfigError."""
        digest = hashlib.sha256(f"{VERSION}{self.to_json()}".encode()).hexdigest()
        path_base = run_directory(create=True) / f"gateway-{digest[:16]}"
        if len(str(path_base)) > PATH_MAX:
            raise ConfigError(
                f"{path_base.parent} is too long a name: set XDG_RUNTIME_DIR to another"
            )
        return path_base


PATH_MAX = 96
"""Characters: the kernel allows 107 for the name of a socket, and an ending follows."""
VERSION = 1
"""Changes with what clients and gateways say to each other, so that strangers never meet."""
