"""The verdict on each defect: one line of JSON each, so that a run can be resumed; and the table of a report."""
import json
import os
from typing import Dict, List

import tree

PATH = os.path.join(tree.BUILD, "ledger.jsonl")
EQUIVALENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalent.json")
COLUMNS = ("found", "survived", "not reached", "equivalent", "not run")


class Ledger:
    def __init__(self, path: str = PATH) -> None:
        self.path = path
        self.rows: Dict[str, Dict] = {}
        if os.path.exists(path):
            with open(path) as lines:
                for line in lines:
                    row = json.loads(line)
                    self.rows[row["key"]] = row

    def has(self, key: str) -> bool:
        return key in self.rows

    def add(self, key: str, site: Dict, result: Dict) -> None:
        row = {"key": key, "name": site["name"], "number": site["number"], **result}
        self.rows[key] = row
        with open(self.path, "a") as lines:
            lines.write(json.dumps(row) + "\n")

    def forget(self, verdicts: List[str]) -> None:
        """Tests have been added: what was not found before is tried again."""
        self.rows = {key: row for key, row in self.rows.items() if row["verdict"] not in verdicts}
        with open(self.path, "w") as lines:
            for row in self.rows.values():
                lines.write(json.dumps(row) + "\n")


def equivalents() -> Dict[str, str]:
    """{name of a site: why no test can find it}."""
    with open(EQUIVALENT) as file:
        return json.load(file)


def outcome(site: Dict, book: Ledger, judged: Dict[str, str]) -> str:
    row = book.rows.get(tree.key(site))
    if row is not None and row["verdict"] not in ("survived", "not reached"):
        return "found"
    if site["name"] in judged:
        return "equivalent"
    return "not run" if row is None else row["verdict"]


def report(sites: List[Dict], book: Ledger) -> str:
    judged = equivalents()
    table: Dict[str, Dict[str, int]] = {}
    for site in sites:
        folder = "named" if site["kind"] == "named" else site["path"].split("/")[1]
        row = table.setdefault(folder, dict.fromkeys(COLUMNS, 0))
        row[outcome(site, book, judged)] += 1
    table["all seeded"] = {c: sum(row[c] for folder, row in table.items() if folder != "named") for c in COLUMNS}
    lines = ["%-12s %s" % ("", " ".join("%12s" % c for c in COLUMNS))]
    lines += ["%-12s %s" % (folder, " ".join("%12d" % row[c] for c in COLUMNS)) for folder, row in table.items()]
    lines += ["", "Neither found nor judged equivalent:"]
    for site in sites:
        if outcome(site, book, judged) in ("survived", "not reached"):
            lines.append("%5d %s:%d %s (%s)\n      %s" % (site["number"], site["path"], site["line"], site["kind"],
                                                     outcome(site, book, judged), " ".join(site["text"].split())[:160]))
    return "\n".join(lines)
