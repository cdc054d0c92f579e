"""liborrery through ctypes: a handle a call, its sentence as an exception, the GIL free while it works."""

from __future__ import annotations

import ctypes
import glob
import json
import os
from typing import Any, Callable, Mapping, Optional, Union

Scenario = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Progress = Callable[[float], Any]

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double, ctypes.c_void_p)


class OrreryError(ValueError):
    """What Orrery refused, in its own sentence: which key held which value, and what would work."""

    __module__ = "orrery"  # where it is imported from


def _find() -> str:
    given = os.environ.get("ORRERY_LIBRARY")
    if given:
        return given
    beside = sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "liborrery.*")))
    return beside[0] if beside else "liborrery.so.0"


def _open() -> ctypes.CDLL:
    library = ctypes.CDLL(_find())
    text, handle = ctypes.c_char_p, ctypes.c_void_p
    library.orr_version.restype = text
    library.orr_version.argtypes = []
    library.orr_new.restype = handle
    library.orr_new.argtypes = []
    library.orr_free.restype = None
    library.orr_free.argtypes = [handle]
    library.orr_on_progress.restype = None
    library.orr_on_progress.argtypes = [handle, _CALLBACK, ctypes.c_void_p]
    library.orr_error.restype = text
    library.orr_error.argtypes = [handle]
    for name in ("orr_load", "orr_set"):
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_int, [handle, text]
    for name in ("run", "search", "plan", "sweep", "explain", "compare", "trace", "campaign", "validate", "page", "csv", "list", "help"):
        function = getattr(library, "orr_" + name)
        function.restype, function.argtypes = text, [handle, text]
    library.orr_timeline.restype, library.orr_timeline.argtypes = text, [handle, ctypes.c_int]
    library.orr_preset.restype, library.orr_preset.argtypes = text, [handle, text, text]
    return library


_LIBRARY = _open()


def version() -> str:
    return str(_LIBRARY.orr_version(), "utf-8")


def text_of(value: Any) -> str:
    """A value as --set reads it: JSON, but words without their quotes."""
    return value if isinstance(value, str) else json.dumps(value)


class Handle:
    """One handle of the library. Not shared between threads."""

    def __init__(self, scenario: Optional[Scenario] = None, sets: Optional[Mapping[str, Any]] = None,
                 progress: Optional[Progress] = None) -> None:
        self._handle = _LIBRARY.orr_new()
        self._raised: Optional[BaseException] = None
        self._callback = _CALLBACK(self._tell) if progress is not None else None
        self._progress = progress
        try:
            if self._callback is not None:
                _LIBRARY.orr_on_progress(self._handle, self._callback, None)
            if scenario is not None:
                self._load(scenario)
            for key, value in (sets or {}).items():
                self._check(_LIBRARY.orr_set(self._handle, f"{key}={text_of(value)}".encode()) == 0)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        if self._handle is not None:
            _LIBRARY.orr_free(self._handle)
            self._handle = None

    def _load(self, scenario: Scenario) -> None:
        if isinstance(scenario, Mapping):
            given = json.dumps(dict(scenario))
        else:
            given = os.fspath(scenario)
            if given.lstrip().startswith("{"):
                raise OrreryError("a scenario as text is a path; give a dict, or json.loads() it")
        self._check(_LIBRARY.orr_load(self._handle, given.encode()) == 0)

    def _tell(self, done_frac: float, _: Any) -> int:
        try:
            return 1 if self._progress is not None and self._progress(done_frac) is False else 0
        except BaseException as error:  # shown once the call is over
            self._raised = error
            return 1

    def _check(self, done: bool) -> None:
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        if not done:
            raise OrreryError(_LIBRARY.orr_error(self._handle).decode())

    def call(self, name: str, *arguments: Any) -> str:
        given = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
        answer = getattr(_LIBRARY, "orr_" + name)(self._handle, *given)
        self._check(answer is not None)
        return str(answer, "utf-8")

    def ask(self, name: str, options: Mapping[str, Any]) -> str:
        given = {key: value for key, value in options.items() if value is not None}
        return self.call(name, json.dumps(given))
