"""The paper's numbers, and finished runs beside them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from plremix import recipes
from plremix.cli import main
from plremix.config import SCHEMA_VERSION
from plremix.paper import TABLES

LATEX = Path(__file__).parents[2] / "shared" / "paper.tex"


def latex_rows(label: str) -> list[list[str]]:
    """The numbers of every row of the table with that label, in order; header rows have none."""
    source = LATEX.read_text(encoding="utf-8")
    start = source.index(r"\begin{tabular}", source.index(rf"\label{{{label}}}"))
    body = source[start : source.index(r"\end{tabular}", start)]
    rows = []
    for line in body.split(r"\\"):
        cells = [re.findall(r"\d+\.\d+|(?<={)-(?=})|^\s*-\s*$", cell) for cell in line.split("&")]
        if any("." in number for cell in cells for number in cell):
            rows.append([cell[-1].strip() for cell in cells if cell])
    return rows


@pytest.mark.skipif(not LATEX.exists(), reason="the paper is not here")
@pytest.mark.parametrize("name", TABLES)
def test_every_number_is_the_papers(name: str) -> None:
    table = TABLES[name]
    expected = [numbers[-len(table.columns) :] for numbers in latex_rows(table.label)]
    assert [row.values() for row in table.rows] == expected


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_has_a_recipe_or_no_method(name: str) -> None:
    table = TABLES[name]
    for row in table.rows:
        assert len(row.values()) == len(table.columns)
        for column in table.columns:
            if row.method:
                assert recipes.build(column.recipe + row.suffix, row.method).method == row.method


def write_run(folder: Path, recipe: str, *, last: float, method: str = "plremix", **changes: Any) -> None:
    config = {**recipes.build(recipe, method).as_dict(), **changes}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"schema_version": SCHEMA_VERSION, **config}))
    summary = {"status": "done", "best": last + 0.01, "last": last}
    (folder / "summary.json").write_text(json.dumps(summary))
    lines = [{"epoch": 0, "test_accuracy": 0.7}, {"epoch": 1, "test_accuracy": last}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def as_rows(text: str) -> dict[tuple[str, str, str], dict[str, str]]:
    return {(row["row"], row["column"], row["measure"]): row for row in csv.DictReader(io.StringIO(text))}


def test_runs_are_set_against_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, last in [(0, 0.94), (1, 0.96)]:
        write_run(tmp_path / f"deep/er/{seed}", "cifar10-sym-50", last=last, seed=seed, device="cpu")
    write_run(tmp_path / "other", "cifar10-sym-50", last=0.90, method="dividemix")
    write_run(tmp_path / "short", "cifar10-sym-80", last=0.5, epochs=30, seed=3)
    assert main(["table", "cifar", "--runs", str(tmp_path), "--format", "csv"]) == 0
    rows = as_rows(capsys.readouterr().out)

    both = rows["PLReMix", "cifar10 sym-50", "last"]
    assert (both["paper"], both["ours"], both["deviation"], both["seeds"]) == ("95.36", "95", "1", "2")
    assert both["difference"] == "-0.36"
    assert not both["changed"]
    assert rows["DivideMix", "cifar10 sym-50", "best"]["ours"] == "91"
    assert rows["PLReMix", "cifar10 sym-80", "last"]["changed"] == "epochs 30 instead of 400"
    missing = rows["UNICON", "cifar100 asym-40", "best"]
    assert missing["ours"] == ""
    assert missing["command"] == "plremix train cifar100-asym-40 --method unicon --data-dir DIR"
    assert rows["TCL", "cifar10 sym-20", "best"]["command"] == ""


def test_runs_with_the_recipes_settings_come_before_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "short", "cifar10-sym-80", last=0.5, epochs=30)
    write_run(tmp_path / "whole", "cifar10-sym-80", last=0.9, seed=1)
    main(["table", "kappa", "--runs", str(tmp_path), "--format", "csv"])
    assert as_rows(capsys.readouterr().out)["PLReMix", "falling", "last"]["ours"] == "90"


def test_clothing1m_is_read_after_the_last_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run", "clothing1m", last=0.6)
    main(["table", "clothing1m", "--runs", str(tmp_path), "--format", "csv"])
    row = as_rows(capsys.readouterr().out)["PLReMix", "accuracy", "test_accuracy"]
    assert (row["ours"], row["difference"]) == ("60", "-14.85")


@pytest.mark.parametrize("form", ["text", "md"])
def test_people_see_what_is_there_and_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    write_run(tmp_path / "run", "cifar10-sym-80-kappa-2", last=0.92, epochs=10)
    assert main(["table", "kappa", "--runs", str(tmp_path), "--format", form]) == 0
    shown = capsys.readouterr().out
    assert "92.81 > 92.00 ± 0.00 (1) -0.81*" in shown
    assert "* PLReMix, kappa = 2: epochs 10 instead of 400" in shown
    assert "plremix train cifar10-sym-80-only-y --data-dir DIR" in shown
    assert "plremix train cifar10-sym-80-kappa-2 " not in shown


def test_what_is_no_run_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, summary in [("broken", "{"), ("list", "[1]"), ("alone", '{"status": "done"}')]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(summary)
    write_run(tmp_path / "unfinished", "cifar10-sym-80", last=0.5)
    (tmp_path / "unfinished" / "summary.json").write_text('{"status": "interrupted", "last": 0.5}')
    assert main(["table", "all", "--runs", str(tmp_path)]) == 0
    assert " > " not in capsys.readouterr().out.replace("`paper > ours", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table"], "needs a name first: one of cifar, tiny-imagenet"),
        (["table", "mnist"], "another name than 'mnist'"),
        (["table", "cifar", "--runs", "nowhere"], "there is no folder nowhere"),
        (["table", "cifar", "--format", "xml"], "format"),
    ],
)
def test_a_wrong_word_is_told(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err
