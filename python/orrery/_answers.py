"""What some answers can do besides, and how a notebook shows them."""

from __future__ import annotations

import html
import re
from typing import Any, Dict, Mapping, Optional

from . import _shapes
from ._library import Handle, Scenario


_STYLE = """<style>.orrery svg{max-width:100%;height:auto;font:12px sans-serif}.orrery text{fill:currentColor}
.orrery .mb{font-size:11px}.orrery .light{fill:#fff}.orrery .idle{fill:#8883}.orrery .axis{stroke:currentColor}
.orrery .grid{stroke:#8884}.orrery .limit{stroke:#d55e00;stroke-dasharray:7 5}.orrery .legend{display:flex;
flex-wrap:wrap;gap:0 14px;list-style:none;padding:0}.orrery .legend svg{width:.8em;margin-right:.4em}
.orrery .zoom,.orrery .phones{display:none}.orrery table td{text-align:left;padding:2px 12px 2px 0}</style>"""


class Report(_shapes.Report):
    """What `run` found."""

    def __init__(self, data: Dict[str, Any], scenario: Scenario, sets: Mapping[str, Any]) -> None:
        super().__init__(data)
        self._scenario, self._sets = scenario, dict(sets)

    def __repr__(self) -> str:
        fits = "fits" if self["fits"] else "does not fit"
        mfu = f", MFU {100 * self['mfu']:.1f} %" if "mfu" in self._data else ""  # a loop over several models has none
        return f"<Report {self['scenario']!r}: step {self['step_s']:.4g} s{mfu}, {self['gpus']} GPUs, {fits}>"

    def timeline(self, width: int = 100) -> str:
        """The pipeline of the step in characters."""
        with Handle(self._scenario, self._sets) as handle:
            return handle.call("timeline", width)

    def csv(self, figure: str) -> str:
        """The numbers of a figure: "pipeline", "memory", "stages" or "waterfall"."""
        with Handle(self._scenario, self._sets) as handle:
            return handle.call("csv", figure)

    def page(self, search: bool = False, max_seconds: Optional[float] = None) -> str:
        """One HTML page to show; with `search` also what else could be run."""
        with Handle(self._scenario, self._sets) as handle:
            return handle.ask("page", {"search": search, "max_seconds": max_seconds})

    def figure(self, name: str = "pipeline") -> str:
        """One figure of the page as HTML with SVG: pipeline (of parameter servers workers, of loops loop), memory, stages, waterfall,
        split."""
        page = self.page()
        if name == "pipeline" and '<figure id="pipeline">' not in page:
            name = "workers" if '<figure id="workers">' in page else "loop"
        found = re.search(rf'<figure id="{re.escape(name)}">.*?</figure>', page, re.DOTALL)
        if found is None:
            raise KeyError(f"no figure {name!r}; there are pipeline, memory, stages, waterfall, split")
        return f'{_STYLE}<div class="orrery">{found.group(0)}</div>'

    def _repr_html_(self) -> str:
        rows = [("step", f"{self['step_s']:.4g} s"), ("tokens/s", f"{self['tokens_per_s']:,.0f}"),
                ("GPUs", f"{self['gpus']:,}")]
        if "phases" in self._data:
            rows.append(("memory", "fits" if self["fits"] else "does not fit"))
        else:
            memory, gib = self["memory"], 2.0 ** 30
            fits = memory["reserved_bytes"] <= memory["capacity_bytes"]  # as the terminal and the page count it
            occupied = memory["reserved_bytes" if fits else "needed_bytes"]
            rows.insert(1, ("MFU", f"{100 * self['mfu']:.1f} %"))
            rows.append(("memory", f"{memory['verdict']}: {occupied / gib:.1f} of "
                                   f"{memory['capacity_bytes'] / gib:.1f} GiB"))
        table = "".join(f"<tr><td>{label}</td><td>{html.escape(text)}</td></tr>" for label, text in rows)
        return (f'{_STYLE}<div class="orrery"><b>{html.escape(str(self["scenario"]))}</b><table>{table}</table></div>'
                f'{self.figure("pipeline")}')


class Search(_shapes.Search):
    """What `search` found: `best`, fastest first; `pareto`; `nearest_misses`; `proved` and `gap_frac`."""

    def __repr__(self) -> str:
        best = self._data["best"]
        first = f"the best {best[0]['step_s']:.4g} s" if best else "none fits"
        return f"<Search: {len(best)} configurations, {first}, {'proved' if self._data['proved'] else 'not proved'}>"

    def scenario(self, index: int = 0) -> Dict[str, Any]:
        """What "auto" became in the index-th best, as {"training": ..., "parallel": ..., "execution": ...}."""
        best = self._data["best"][index]
        return {key: best[key] for key in ("training", "parallel", "execution") if key in best}

    def to_frame(self) -> Any:
        """The best as a pandas.DataFrame, a row a configuration."""
        import pandas

        rows = []
        for best in self._data["best"]:
            row = {f"{part}.{key}": value for part in ("training", "parallel", "execution")
                   for key, value in best.get(part, {}).items()}
            report = best["report"]
            row.update({key: report[key] for key in ("step_s", "mfu", "tokens_per_s", "bubble_frac", "fits")
                        if key in report})
            rows.append(row)
        return pandas.DataFrame(rows)


class Plan(_shapes.Plan):
    """What `plan` found: `rows`, one a number of GPUs, each with the scenario that runs it."""

    def __repr__(self) -> str:
        return f"<Plan: {len(self._data['rows'])} rows, GPUs {', '.join(str(row['gpus']) for row in self._data['rows'][:6])}>"

    def to_frame(self) -> Any:
        """The rows as a pandas.DataFrame, without their scenarios."""
        import pandas

        return pandas.DataFrame([{key: value for key, value in row.items() if not isinstance(value, (dict, list))}
                                 for row in self._data["rows"]])
