"""Orrery: a clockwork model of a training cluster.

    import orrery
    report = orrery.run("scenarios/examples/gpt3-175b.json", parallel__tensor=4)
    report.step_s, report.mfu, report.memory.verdict

A scenario is a path or a dict with the keys of a scenario file. Fields are overridden by ``set={"parallel.tensor": 4}`` or
by keywords with two underscores for the dot (or ``**{"parallel.tensor": 4}``). What Orrery refuses is an `OrreryError`
with its sentence.
"""

from __future__ import annotations

import builtins
import itertools
import json
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._answer import Answer
from ._answers import Plan, Report, Search
from ._commands import Exported, Noted, Sets, calibrate, collective, export, generate, glossary, import_, jobs, plot, sets_of
from ._library import Handle, OrreryError, Progress, Scenario
from ._library import version as _version
from ._shapes import Campaign, Collective, Comparison, Explanation, Generated, Jobs, Trace, Validation

__version__ = _version()
__all__ = ["Answer", "Campaign", "Collective", "Comparison", "Explanation", "Exported", "Generated", "Jobs", "Noted", "OrreryError", "Plan",
           "Report", "Search", "Trace", "Validation", "calibrate", "campaign", "collective", "compare", "explain", "export", "generate", "glossary",
           "help", "import_", "jobs", "list", "plan", "plot", "preset", "run", "search", "sweep", "trace", "validate"]

class _Bar:
    """tqdm where it is installed, nothing where it is not."""

    def __init__(self, what: str, shown: bool) -> None:
        self._bar: Any = None
        if shown:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(total=100, desc=what, unit="%", leave=False)

    def __enter__(self) -> Optional[Progress]:
        return self._tell if self._bar is not None else None

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def _tell(self, done_frac: float) -> None:
        self._bar.update(max(round(100 * done_frac) - self._bar.n, 0))


def run(scenario: Scenario, set: Sets = None, *, memory_reserve: Optional[str] = None, unfold: bool = False,
        check: bool = False, own_runs: Optional[str] = None, **fields: Any) -> Report:
    """Simulates one training step. `check` verifies the engine's invariants, `unfold` simulates every rank on its own.
    `own_runs`: a file of your own measured runs, which correct steps, days and costs."""
    sets = sets_of(set, fields)
    with Handle(scenario, sets) as handle:
        text = handle.ask("run", {"memory_reserve": memory_reserve, "unfold": unfold, "check": check,
                                   "own_runs": own_runs})
    return Report(json.loads(text), scenario, sets)


def search(scenario: Scenario, set: Sets = None, *, top: Optional[int] = None, jobs: Optional[int] = None,
           max_seconds: Optional[float] = None, exhaustive: bool = False, memory_reserve: Optional[str] = None,
           by: Optional[str] = None, own_runs: Optional[str] = None, progress: bool = False, **fields: Any) -> Search:
    """The best configuration of every field that is "auto", with proof. `by`: "step" (default), or the "days" with failures, the
    "cost" or the "energy" of all tokens."""
    with _Bar("searching", progress) as tell, Handle(scenario, sets_of(set, fields), tell) as handle:
        return Search(json.loads(handle.ask("search", {
            "top": top, "jobs": jobs, "max_seconds": max_seconds, "exhaustive": exhaustive,
            "for": by, "memory_reserve": memory_reserve, "own_runs": own_runs})))


def _several(values: Any) -> Optional[List[Any]]:
    """A list of one where one is given."""
    return None if values is None else [values] if isinstance(values, (str, int)) else builtins.list(values)


def plan(scenario: Scenario, set: Sets = None, *, deadline: Optional[str] = None, budget_usd: Optional[float] = None,
         power_mw: Optional[float] = None, gpus: "int | Sequence[int] | None" = None, batch_range: Optional[Tuple[int, int]] = None,
         accelerators: "str | Sequence[str] | None" = None, clusters: "str | Sequence[str] | None" = None,
         frameworks: "str | Sequence[str] | None" = None, machines: Optional[str] = None,
         whole_racks: bool = False, by: Optional[str] = None,
         memory_reserve: Optional[str] = None, own_runs: Optional[str] = None, progress: bool = False,
         **fields: Any) -> Plan:
    """How many GPUs a deadline ("30 days") or a budget needs; days, cost and energy of each number of GPUs. `by`: the count with
    the least "days", "cost" or "energy" of those that keep what is asked; `machines`: a file of machines with their prices."""
    with _Bar("planning", progress) as tell, Handle(scenario, sets_of(set, fields), tell) as handle:
        return Plan(json.loads(handle.ask("plan", {
            "deadline": deadline, "budget_usd": budget_usd, "power_mw": power_mw, "for": by, "gpus": _several(gpus),
            "batch_range": None if batch_range is None else builtins.list(batch_range),
            "accelerators": _several(accelerators), "clusters": _several(clusters),
            "frameworks": _several(frameworks), "machines": machines, "whole_racks": whole_racks, "memory_reserve": memory_reserve,
            "own_runs": own_runs})))


def explain(scenario: Scenario, set: Sets = None, *, memory_reserve: Optional[str] = None,
            own_runs: Optional[str] = None, **fields: Any) -> Explanation:
    """What binds the step, and what single changes would bring, each simulated."""
    with Handle(scenario, sets_of(set, fields)) as handle:
        return Explanation(json.loads(handle.ask("explain", {"memory_reserve": memory_reserve, "own_runs": own_runs})))


def compare(a: Scenario, b: Scenario, set: Sets = None, *, quick: bool = False, own_runs: Optional[str] = None,
            **fields: Any) -> Comparison:
    """Two scenarios side by side: fields that differ, times, memory, and what each field does alone (not with `quick`)."""
    other = json.dumps(b) if isinstance(b, Mapping) else os.fspath(b)
    with Handle(a, sets_of(set, fields)) as handle:
        return Comparison(json.loads(handle.ask("compare", {"with": other, "quick": quick, "own_runs": own_runs})))


def trace(path: "str | os.PathLike[str]", scenario: Optional[Scenario] = None, set: Sets = None, **fields: Any) -> Trace:
    """A profiler's trace, or a folder with one of each rank: kernels by class, and where the prediction of `scenario` differs."""
    with Handle(scenario, sets_of(set, fields)) as handle:
        return Trace(json.loads(handle.call("trace", os.fspath(path))))


def campaign(scenario: Scenario, set: Sets = None, *, replicas: Optional[int] = None, seed: Optional[int] = None,
             days: Optional[float] = None, jobs: Optional[int] = None, ideal: bool = False, **fields: Any) -> Campaign:
    """Weeks of training with failures, checkpoints and restarts; ideal: only those that the scenario itself says."""
    with Handle(scenario, sets_of(set, fields)) as handle:
        return Campaign(json.loads(handle.ask("campaign", {"replicas": replicas, "seed": seed, "days": days, "jobs": jobs,
                                                        "ideal": ideal})))


def validate(*paths: "str | os.PathLike[str]") -> Validation:
    """Replays files of published measurements: predicted beside measured."""
    with Handle() as handle:
        return Validation(json.loads(handle.call("validate", json.dumps([os.fspath(path) for path in paths]))))


_SWEPT = ("gpus", "fits", "step_s", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "hfu", "bubble_frac", "peak_bytes", "verdict")


def _sweep_row(point: Mapping[str, Any], told: Mapping[str, Any]) -> Dict[str, Any]:
    if told["reason"] is not None:
        return {**point, "error": told["reason"]}
    times = {key[len("time."):]: value for key, value in told.items() if key.startswith("time.")}
    return {**point, **{key: told[key] for key in _SWEPT}, **times, "error": None}


def sweep(scenario: Scenario, vary: Mapping[str, Iterable[Any]], set: Sets = None, *, jobs: Optional[int] = None,
          progress: bool = False, **fields: Any) -> Any:
    """Runs every combination of the values of `vary`, on all cores: a pandas.DataFrame where pandas is installed, else a
    list of dicts. A combination that Orrery refuses is a row with its sentence in `error`."""
    values = {key: builtins.list(given) if not isinstance(given, (str, int, float)) else [given]
              for key, given in vary.items()}
    points = [dict(zip(values, chosen)) for chosen in itertools.product(*values.values())]
    with _Bar("sweeping", progress) as tell, Handle(scenario, sets_of(set, fields), tell) as handle:
        told = json.loads(handle.ask("sweep", {"vary": values, "jobs": jobs}))["rows"]
    rows = [_sweep_row(point, row) for point, row in zip(points, told)]
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def list(kind: str) -> List[str]:
    """Names of the presets: "models", "accelerators", "clusters", "frameworks", "faults", "storage", "examples" ..."""
    with Handle() as handle:
        names: List[str] = json.loads(handle.call("list", kind))
    return names


def preset(kind: str, name: str) -> Dict[str, Any]:
    """A preset as a dict; an example is a whole scenario."""
    with Handle() as handle:
        found: Dict[str, Any] = json.loads(handle.call("preset", kind, name))
    return found


def help(key: str) -> str:
    """What a field of a scenario is: ``print(orrery.help("parallel.zero"))``."""
    with Handle() as handle:
        return handle.call("help", key)
