"""How long a message may wait, by its size: small ones are worth little waiting, large ones
more."""

from __future__ import annotations

from bisect import bisect_left

from ringcast.errors import ConfigError


class BlockTimes:
    """Steps of "size:milliseconds", both rising: "1000:10,10000:100".

    A message of up to 1,000 bytes waits 10 ms at the most, one of up to 10,000 bytes 100 ms; a
    larger one has no bound. An empty text bounds nothing."""

    __slots__ = ("_seconds", "_sizes")

    def __init__(self, text: str, owner: str = "max_block_times") -> None:
        """Raises ConfigError, in the name of the setting's owner, for anything but rising steps."""
        self._sizes: list[int] = []
        self._seconds: list[float] = []
        for step in text.split(",") if text.strip() else ():
            size, milliseconds = _parse(step, text, owner)
            if self._sizes and not (
                size > self._sizes[-1] and milliseconds > self._seconds[-1] * 1000
            ):
                raise ConfigError(
                    f'{owner} is "{text}": "{step.strip()}" has to be above the step before it, in'
                    " size and in milliseconds"
                )
            self._sizes.append(size)
            self._seconds.append(milliseconds / 1000)

    def limit(self, size: int) -> float | None:
        """The longest that a message of this size waits, in seconds; None when it has no bound."""
        place = bisect_left(self._sizes, size)
        return self._seconds[place] if place < len(self._sizes) else None

    def __bool__(self) -> bool:
        return bool(self._sizes)


def _parse(step: str, text: str, owner: str) -> tuple[int, float]:
    size, colon, milliseconds = step.partition(":")
    try:
        parsed = int(size), float(milliseconds)
    except ValueError:
        parsed = (0, 0.0)
    if not colon or parsed[0] < 1 or not 0 < parsed[1] < float("inf"):
        raise ConfigError(
            f'{owner} is "{text}": "{step.strip()}" is not a step;'
            ' give size:milliseconds, as in "1000:10,10000:100"'
        )
    return parsed
