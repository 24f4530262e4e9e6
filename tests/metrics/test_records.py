import ast
import datetime
import json
import math
import platform
import re
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from pushforward import methods
from reproduce import origin, records
from reproduce.records import Header, Record

HEADER = Header("two_d", "cpu", 7, "pushforward study two-d", {"jax": "0.10.2"}, 2)
RECORD = Record("two_d", "cpu", "kl", "mog2", "ksd_imq_v", 0.104, 0.015, 500, 20, 7, 0.109)
BARE = Record("two_d", "cpu", "flow", "mog2", "parameters", 243_606)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "results" / "two_d.jsonl"
    records.write(path, HEADER, [RECORD])
    return path


def test_fields_are_those_of_the_design():
    names = ["study", "preset", "method", "target", "metric", "value", "spread"]
    names += ["n", "repeats", "seed", "floor", "recipe"]
    assert [field.name for field in fields(Record)] == names
    assert list(json.loads(json.dumps(RECORD.as_json()))) == names
    assert HEADER.as_json()["kind"] == "header"


def test_round_trip(path):
    records.append(path, BARE)
    records.append(path, [replace(RECORD, method="ld"), replace(RECORD, method="hmc")])
    records.append(path, [])
    header, found = records.read(path)
    assert header == HEADER
    assert [each.method for each in found] == ["kl", "flow", "ld", "hmc"]
    assert found[:2] == [RECORD, BARE]
    assert found[1].spread is None


def test_writing_again_begins_anew(path):
    records.write(path, HEADER, [BARE])
    assert records.read(path)[1] == [BARE]
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_a_method_that_broke_down_is_null_on_disk_and_nan_in_hand(path, value):
    broken = replace(RECORD, value=value, spread=value, floor=value)
    assert math.isnan(broken.value)
    assert broken.spread is None
    records.append(path, broken)
    line = path.read_text().splitlines()[-1]
    assert json.loads(line, parse_constant=pytest.fail)["value"] is None
    assert records.read(path)[1][-1] == broken


def test_numbers_of_numpy_become_plain():
    record = replace(RECORD, value=np.float32(0.5), n=np.int64(3), spread=np.array(0.25))
    assert (type(record.value), type(record.n), record.spread) == (float, int, 0.25)


BAD_RECORDS = {
    "text for a value": ({"value": "0.1"}, "`value` must be a number; got '0.1'"),
    "a flag for a value": ({"value": True}, "`value` must be a number; got True"),
    "no name": ({"method": ""}, "`method` must be a name; got ''"),
    "a number for a name": ({"target": 3}, "`target` must be a name; got 3"),
    "no draws": ({"n": 0}, "`n` must be an integer of at least 1; got 0"),
    "half a repeat": ({"repeats": 0.5}, "`repeats` must be an integer of at least 1; got 0.5"),
    "negative seed": ({"seed": -1}, "`seed` must be an integer of at least 0; got -1"),
    "list for a floor": ({"floor": [1]}, r"`floor` must be a number; got \[1\]"),
}


@pytest.mark.parametrize(("change", "message"), BAD_RECORDS.values(), ids=BAD_RECORDS.keys())
def test_bad_records_are_refused_when_built_and_when_read(path, change, message):
    with pytest.raises(ValueError, match=message):
        replace(RECORD, **change)
    with path.open("a") as file:
        file.write(json.dumps({**RECORD.as_json(), **change}) + "\n")
    with pytest.raises(ValueError, match=rf"two_d\.jsonl, line 3: {message}"):
        records.read(path)


GOOD = json.dumps(RECORD.as_json())
BAD_LINES = {
    "broken": (GOOD[:-5], "this is not JSON"),
    "blank": ("", "this is not JSON"),
    "a list": ("[1, 2]", "expected a JSON object; got list"),
    "missing": (json.dumps({"study": "two_d"}), "missing floor, method, metric"),
    "unknown": (GOOD.replace('"study"', '"extra": 1, "study"'), "unknown extra"),
    "twice": (GOOD.replace('"study"', '"value": 1, "study"'), "value appears twice"),
    "NaN": (GOOD.replace("0.104", "NaN"), "NaN is not JSON"),
    "infinity": (GOOD.replace("0.104", "-Infinity"), "-Infinity is not JSON"),
    "other kind": (GOOD.replace('"study"', '"kind": "note", "study"'), "got kind 'note'"),
    "second header": (json.dumps(HEADER.as_json()), "expected a record; got kind 'header'"),
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_bad_lines_are_named(path, line, message):
    with path.open("a") as file:
        file.write(line + "\n" + GOOD + "\n")
    with pytest.raises(ValueError, match=rf"two_d\.jsonl, line 3: .*{message}"):
        records.read(path)


BAD_HEADERS = {
    "empty file": ("", "expected a header; the file is empty"),
    "a record first": (GOOD, "expected a header; got kind 'record'"),
    "missing": ('{"kind": "header", "study": "x"}', "missing command, cores, preset"),
    "versions": (
        json.dumps({**HEADER.as_json(), "versions": {"jax": 1}}),
        "`versions` must map library names",
    ),
    "cores": (json.dumps({**HEADER.as_json(), "cores": 0}), "`cores` must be an integer"),
}


@pytest.mark.parametrize(("line", "message"), BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_bad_headers_are_named(path, line, message):
    path.write_text(line)
    with pytest.raises(ValueError, match=rf"two_d\.jsonl, line 1: .*{message}"):
        records.read(path)


def test_appending_needs_a_file_that_was_begun(tmp_path):
    with pytest.raises(ValueError, match=r"Begin it with `write\(path, header\)`"):
        records.append(tmp_path / "none.jsonl", RECORD)


def test_appending_to_a_torn_line_is_refused(path):
    torn = path.read_text()[:-10]
    path.write_text(torn)
    with pytest.raises(ValueError, match=r"the last line is incomplete"):
        records.append(path, RECORD)
    assert path.read_text() == torn


def test_header_of_this_machine():
    header = Header.of_this_machine("two_d", "smoke", 0, "pytest")
    assert header.cores >= 1
    assert {"pushforward", "jax", "numpy", "equinox"} <= header.versions.keys()
    assert header.recipe == methods.METHODS["default"].recipe.digest()
    assert header.date == datetime.datetime.now(datetime.UTC).date().isoformat()
    assert header.host == f"{platform.system()} {platform.machine()}"
    assert header.commit is None or re.fullmatch(r"[0-9a-f]{12}\+?", header.commit)
    fast = methods.KL(num_steps=3).recipe
    assert Header.of_this_machine("two_d", "smoke", 0, "pytest", fast).recipe == fast.digest()


def test_files_of_version_0_1_are_read(path):
    """They know neither of recipes nor of commits."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for name in ("recipe", "date", "commit", "host"):
            line.pop(name, None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert records.read(path) == (HEADER, [RECORD])


def test_figures_of_a_fit_name_its_recipe(path):
    recipe = methods.KL(num_steps=3).recipe
    records.append(path, records.of_recipe(recipe, [RECORD]))
    assert records.read(path)[1][-1] == replace(RECORD, recipe=recipe.digest())
    with pytest.raises(ValueError, match="`recipe` must be a name"):
        replace(RECORD, recipe=3)


@pytest.mark.parametrize("module", [records, origin], ids=["records", "origin"])
def test_the_module_stands_on_the_standard_library_alone(module):
    tree = ast.parse(Path(module.__file__).read_text())
    names = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    } - {"reproduce.origin"}
    # Of `pushforward`: files, the error for bad ones, and, for a header alone, the recipe.
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"pushforward"}
