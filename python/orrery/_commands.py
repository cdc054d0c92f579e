"""What the program does besides steps: collectives, jobs on a cluster, other tools' files, calibration, pictures, words."""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._library import Handle, Scenario, text_of
from ._shapes import Collective, Generated, Jobs

Path = Union[str, "os.PathLike[str]"]
Sets = Optional[Mapping[str, Any]]


def sets_of(given: Sets, fields: Mapping[str, Any]) -> Dict[str, Any]:
    sets = dict(given or {})
    for key, value in fields.items():
        if "__" not in key and "." not in key:
            raise TypeError(f"unexpected keyword {key!r}; a field of the scenario has its section, as parallel__tensor")
        sets[key.replace("__", ".")] = value
    return sets


def _flags(options: Mapping[str, Any]) -> Iterator[str]:
    for key, value in options.items():
        flag = "--" + key.rstrip("_").replace("_", "-")
        if value is True:
            yield flag
        elif isinstance(value, (builtins.list, tuple)) and key == "fail":
            yield from (f"{flag}={item}" for item in value)
        elif isinstance(value, (builtins.list, tuple)):
            yield f"{flag}={','.join(map(text_of, value))}"
        elif value is not None and value is not False:
            yield f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else text_of(value)}"


def command(*words: Path, sets: Sets = None, **options: Any) -> Tuple[str, str]:
    """A command of the program: its answer, and what it says besides."""
    whole = [os.fspath(word) for word in words] + builtins.list(_flags(options))
    whole += [f"--set={key}={text_of(value)}" for key, value in (sets or {}).items()]
    with Handle() as handle:
        return handle.call("command", json.dumps(whole)), handle.notes()


@contextlib.contextmanager
def _file(scenario: "Scenario | Mapping[str, Any]") -> Iterator[str]:
    """A path to it."""
    if not isinstance(scenario, Mapping):
        yield os.fspath(scenario)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scenario.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(dict(scenario), out)
        yield path


def collective(op: str = "all-reduce", bytes: "int | str | Sequence[int | str] | None" = None, *, cluster: Optional[str] = None, ranks: Optional[int] = None,
               algorithm: Optional[str] = None, library: Optional[str] = None, fidelity: Optional[str] = None,
               topology: Optional[Path] = None, routing: Optional[str] = None, dims: Optional[str] = None,
               rate: Optional[str] = None, latency: Optional[str] = None, fail: Iterable[str] = (), **others: Any) -> Collective:
    """A collective on a fabric, step by step: seconds, bus bandwidth, steps, and what NCCL would choose. `fidelity`: "analytic" or
    "flow". Others are flags of `orrery help collective`."""
    return Collective(json.loads(command("collective", op=op, bytes=bytes, cluster=cluster, ranks=ranks, algorithm=algorithm,
                                         library=library, fidelity=fidelity, topology=topology, routing=routing, dims=dims,
                                         rate=rate, latency=latency, fail=builtins.list(fail), format="json", **others)[0]))


def jobs(trace: "Path | Mapping[str, Any] | None" = None, *, seed: Optional[int] = None, count: Optional[int] = None) -> Jobs:
    """A trace of jobs on one cluster under each policy; with a `seed` one that is drawn."""
    if trace is None:
        return Jobs(json.loads(command("jobs", seed=seed, count=count, format="json")[0]))
    with _file(trace) as path:
        return Jobs(json.loads(command("jobs", path, seed=seed, count=count, format="json")[0]))


def generate(scenario: Scenario, set: Sets = None, *, prompts: Optional[int] = None, samples: Optional[int] = None,
             prompt_tokens: Optional[int] = None, answer_tokens: Optional[int] = None, **more: Any) -> Generated:
    """How long a batch of prompts takes. Fields of the scenario are keywords with two underscores, flags of `orrery help generate`
    such without."""
    fields = {key: value for key, value in more.items() if "__" in key or "." in key}
    flags = {key: value for key, value in more.items() if key not in fields}
    with _file(scenario) as path:
        return Generated(json.loads(command("generate", path, sets=sets_of(set, fields), prompts=prompts, samples=samples,
                                            prompt_tokens=prompt_tokens, answer_tokens=answer_tokens, format="json", **flags)[0]))


class Noted(Dict[str, Any]):
    """A scenario or a profile as a dict. `notes`: what an import could not take over or lacks for a run, what a fit has found."""

    notes = ""

    def __repr__(self) -> str:
        return f"<{', '.join(self)}; {len(self.notes.splitlines())} lines of notes>"


def _noted(answer: Tuple[str, str]) -> Noted:
    noted = Noted(json.loads(answer[0]))
    noted.notes = answer[1]
    return noted


def import_(file: Path, set: Sets = None, *, format: Optional[str] = None, base: Optional[Scenario] = None,
            cluster: Optional[str] = None, **fields: Any) -> Noted:
    """The configuration of another tool as a scenario: a launch script, a config.json ... `base`: a scenario with what the file does
    not say."""
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(_file(base)) if base is not None else None
        return _noted(command("import", file, sets=sets_of(set, fields), base=path, cluster=cluster, **{"from": format}))


class Exported(NamedTuple):
    """The text of a file, and in `notes` what it leaves out."""

    text: str
    notes: str


def export(scenario: Scenario, to: str, set: Sets = None, *, launch: Optional[str] = None, **fields: Any) -> Exported:
    """A scenario in the words of a framework: megatron, deepspeed, torchtitan ... (`orrery help export`). `launch`: the script of
    "sbatch" or "torchrun" instead."""
    with _file(scenario) as path:
        return Exported(*command("export", path, sets=sets_of(set, fields), to=to, launch=launch))


def calibrate(table: Path, *, accelerator: Optional[str] = None, cluster: Optional[str] = None, **others: Any) -> Noted:
    """What was measured of a GPU, of links or of steps as a profile, which `cluster.calibration` takes. Others are flags of `orrery
    help calibrate`."""
    return _noted(command("calibrate", "fit", table, accelerator=accelerator, cluster=cluster, **others))


def plot(scenario: Optional[Scenario] = None, folder: Optional[Path] = None, set: Sets = None, *, what: "str | Sequence[str] | None" = None,
         svg: bool = False, width: Optional[int] = None, **more: Any) -> List[str]:
    """Pictures of a step, drawn by gnuplot into `folder`: paths of the files written. `what`: names of pictures (`orrery help plot`)."""
    fields = {key: value for key, value in more.items() if "__" in key or "." in key}
    flags = {key: value for key, value in more.items() if key not in fields}
    with contextlib.ExitStack() as stack:
        words = [] if scenario is None else [stack.enter_context(_file(scenario))]
        text, _ = command("plot", *words, sets=sets_of(set, fields), what=what, svg=svg, width=width, output=folder or "plots", **flags)
    return [line for line in text.splitlines() if line]


def glossary(word: str) -> str:
    """What a word of the field, a command or a field of a scenario is: ``print(orrery.glossary("bubble"))``."""
    return command("help", word)[0]
