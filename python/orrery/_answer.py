"""Answers as mappings whose members are also attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Answer(value)
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    return value


class Answer(Mapping[str, Any]):
    """JSON of Orrery: ``answer["memory"]["peak_bytes"]`` and ``answer.memory.peak_bytes`` are one."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        return _wrap(self._data[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    if not TYPE_CHECKING:  # there _shapes.py says which members there are
        def __getattr__(self, key: str) -> Any:
            if key.startswith("_"):
                raise AttributeError(key)
            try:
                return self[key]
            except KeyError:
                raise AttributeError(f"no {key!r}; there are {', '.join(self._data)}") from None

    def __dir__(self) -> List[str]:
        return sorted(set(super().__dir__()) | {key for key in self._data if key.isidentifier()})

    def __repr__(self) -> str:
        shown = [f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value!r}" for key, value in self._data.items()
                 if isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= 40)][:6]
        others = len(self._data) - len(shown)
        return f"<{type(self).__name__}: {', '.join(shown + ([f'{others} more'] if others else []))}>"

    def to_dict(self) -> Dict[str, Any]:
        return self._data


class Fields(Answer):
    """An object whose members a scenario or a file decides."""

    if TYPE_CHECKING:
        def __getattr__(self, key: str) -> Any: ...
