"""liborrery through ctypes: a handle a call, its sentence as an exception, the GIL free while it works."""

from __future__ import annotations

import ctypes
import glob
import json
import os
import threading
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
    for name in ("orr_error", "orr_notes"):
        getattr(library, name).restype, getattr(library, name).argtypes = text, [handle]
    for name in ("orr_load", "orr_set"):
        function = getattr(library, name)
        function.restype, function.argtypes = ctypes.c_int, [handle, text]
    for name in ("run", "search", "plan", "sweep", "explain", "compare", "trace", "campaign", "validate", "page", "csv", "list", "help",
                 "command"):
        function = getattr(library, "orr_" + name)
        function.restype, function.argtypes = text, [handle, text]
    library.orr_timeline.restype, library.orr_timeline.argtypes = text, [handle, ctypes.c_int]
    library.orr_preset.restype, library.orr_preset.argtypes = text, [handle, text, text]
    return library


_LIBRARY = _open()
_PATIENCE_S = 0.2  # with work that was stopped by Ctrl-C


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
        self._callback = _CALLBACK(self._tell)
        self._progress = progress
        self._stopped = False  # by Ctrl-C
        self._lock = threading.Lock()
        self._working = self._left = False  # left: the call frees the handle when it ends
        try:
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
        with self._lock:
            self._left = self._working
            if self._handle is not None and not self._left:
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
            refused = self._progress is not None and self._progress(done_frac) is False
            return 1 if refused or self._stopped else 0
        except BaseException as error:  # shown once the call is over
            self._raised = error
            return 1

    def _check(self, done: bool) -> None:
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        if not done:
            raise OrreryError(_LIBRARY.orr_error(self._handle).decode())

    def _wait(self, work: Callable[[], Optional[bytes]]) -> Optional[bytes]:
        """Python meets Ctrl-C between its own steps: the main thread waits in Python while another one is in the library. Work that
        does not end then goes on unseen, and its handle with it."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        done = threading.Event()
        answers: "list[Optional[bytes]]" = []

        def go_through() -> None:
            try:
                answers.append(work())
            finally:
                with self._lock:
                    self._working = False
                done.set()
                if self._left:
                    self.close()

        self._working = True
        threading.Thread(target=go_through, name="orrery", daemon=True).start()
        try:
            done.wait()
        except KeyboardInterrupt:
            self._stopped = True
            done.wait(_PATIENCE_S)
            raise
        return answers[0]

    def call(self, name: str, *arguments: Any) -> str:
        given = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
        function = getattr(_LIBRARY, "orr_" + name)
        answer = self._wait(lambda: function(self._handle, *given))
        self._check(answer is not None)
        return str(answer or b"", "utf-8")

    def notes(self) -> str:
        """What the last command said besides its answer."""
        return str(_LIBRARY.orr_notes(self._handle), "utf-8").rstrip("\n")

    def ask(self, name: str, options: Mapping[str, Any]) -> str:
        given = {key: value for key, value in options.items() if value is not None}
        return self.call(name, json.dumps(given))
