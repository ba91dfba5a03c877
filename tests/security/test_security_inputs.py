"""Tables, mappings, measurements and run directories that mean harm: one sentence, soon, in little memory, or a result."""

import copy
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tomli
from pyarrow import parquet

from eprof import costs
from eprof.base.errors import CollectError, DefinitionError, EprofError, LogError
from eprof.base.toml import Document, Formula
from eprof.collect import directory
from eprof.costs import file as costfile
from eprof.counts import definition_files
from eprof.lab.measurements import mapping, reading
from eprof.logs import read_columns
from eprof.profile import api

ROOT = Path(__file__).parents[2]
LOG = (ROOT / "samples" / "logs" / "invented" / "tk1-fmm-counters.csv").read_bytes()
READERS = {
    "costs": lambda path: costs.load(str(path)),
    "counters": lambda path: definition_files.named(str(path)),
    "mapping": lambda path: mapping.load(str(path)),
    "columns": read_columns,
    "measurements": reading.table,
}
BOMBS = {
    "deep list": "a = " + "[" * 100_000,
    "deep table": "a = " + "{a = " * 50_000,
    "deep key": ".".join("a" * 50_000) + " = 1",
    "integer": "schema = " + "9" * 10_000,
    "hexadecimal": "schema = 0x" + "f" * 100_000,
    "spaces in a text": 'notes = ["""\n[' + " " * 900_000 + '\n"""]\nschema = 2',
    "long text": 'schema = "' + "x" * 900_000 + '"',
    "NUL": "schema = 1\0",
    "escape": 'schema = "\\u001b[31m"',
}


@pytest.fixture(autouse=True)
def no_endless_work():
    """Every test here ends; what takes a minute of processor time would take for ever."""
    start = time.process_time()
    yield
    assert time.process_time() - start < 60


@pytest.mark.parametrize("kind", READERS)
def test_no_reader_waits_or_reads_without_end(tmp_path, kind):
    named = {"pipe.toml": os.mkfifo, "zero.toml": lambda at: at.symlink_to("/dev/zero"), "folder.toml": os.mkdir}
    for name, make in named.items():
        make(tmp_path / name)
        with pytest.raises(EprofError) as said:
            READERS[kind](tmp_path / name)
        assert name in str(said.value) and len(str(said.value)) < 300


@pytest.mark.parametrize("kind", ["costs", "counters", "mapping", "columns"])
def test_a_giant_is_refused_before_it_is_read(tmp_path, kind):
    with (tmp_path / "giant.toml").open("wb") as file:
        file.truncate(40 << 30)
    with pytest.raises(EprofError, match="larger than 1 MB"):
        READERS[kind](tmp_path / "giant.toml")


def test_a_pipe_that_the_shell_hands_over_is_read():
    give = "import os, sys; from eprof import costs; print(costs.load(f'/dev/fd/{sys.argv[1]}').name)"
    table = (ROOT / "costs" / "gtx680.toml").read_bytes()
    end, start = os.pipe()
    os.write(start, table)
    os.close(start)
    done = subprocess.run(
        [sys.executable, "-c", give, str(end)], pass_fds=[end], capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    os.close(end)
    assert done.stdout == "gtx680\n", done.stderr


@pytest.mark.parametrize("kind", ["costs", "counters", "mapping"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_toml_bombs(tmp_path, bomb, kind):
    (tmp_path / "bomb.toml").write_text(BOMBS[bomb], encoding="utf-8")
    with pytest.raises(DefinitionError) as said:
        READERS[kind](tmp_path / "bomb.toml")
    assert len(str(said.value)) < 3000


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "__import__('os').system('x')", "().__class__", "a.b", "a[0]", "lambda: 0", "f'{a}'", "[1 for x in y]",
     "a if b else c", "a := 1", "-a", "1e400", "9" * 1999, "(" * 900 + "1" + ")" * 900, "+".join("a" * 900), "ﬁ", "𝐚",
     "a\0", "a;b", "a\nb", "await a", "*a", "True", "None", "1j", "'a'", "...", ""],
)  # fmt: skip
def test_a_formula_is_arithmetic_and_short(text):
    with pytest.raises(ValueError, match=r"formula|allowed|letters other than"):
        Formula.parse(text)
    assert Formula.parse("__class__ / 2").names == {"__class__"}  # a name like any other: looked up in a table


def definition(extends="[]", quantities=""):
    return (
        f'schema = 1\nextends = {extends}\napplies = {{ profiler = "x", capability = ["9.9"] }}\nsource = "s"\n'
        f"[counter]\nc = 'c'\n[quantity]\n{quantities}"
    )


def test_steps_that_double_each_time_are_not_written_out(tmp_path):
    steps = 'q0 = [{ formula = "c + c" }]\n' + "".join(
        f'q{at} = [{{ formula = "q{at - 1} + q{at - 1}" }}]\n' for at in range(1, 60)
    )
    (tmp_path / "a.toml").write_text(definition(quantities=steps))
    with pytest.raises(DefinitionError, match="characters, all steps put in|steps deep"):
        definition_files.load(tmp_path / "a.toml")


@pytest.mark.parametrize(
    "name", ["../out.toml", "/etc/passwd", "sub/../../out.toml", "x\\\\..\\\\out", "link.toml", "a" * 5000]
)
def test_extends_stays_in_its_folder(tmp_path, name):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "out.toml").write_text("secret = 1\n")
    (home / "link.toml").symlink_to(tmp_path / "out.toml")
    (home / "a.toml").write_text(definition(extends=f'["{name}"]'))
    with pytest.raises(DefinitionError, match="leads out of the folder|is too long") as said:
        definition_files.load(home / "a.toml")
    assert "secret" not in str(said.value)


def test_extends_neither_circles_nor_multiplies(tmp_path):
    for at in range(40):
        others = ", ".join(f'"{other}.toml"' for other in range(at))
        (tmp_path / f"{at}.toml").write_text(f"schema = 1\nextends = [{others}]\n")
    (tmp_path / "top.toml").write_text(definition(extends='["39.toml"]'))
    with pytest.raises(DefinitionError, match="files deep|never used|no formula uses"):
        definition_files.load(tmp_path / "top.toml")  # each file once, not two to the power of forty times
    (tmp_path / "0.toml").write_text('schema = 1\nextends = "39.toml"\n')
    with pytest.raises(DefinitionError, match="extends itself|files deep"):
        definition_files.load(tmp_path / "top.toml")


ODD = [0, -1, 2**62, 10**1000, float("nan"), float("inf"), 1e308, True, "", "__class__", "1/0", "{}", "\x1b[31m", [], [1],
       [[]], {}, {"a": 1}, {"formula": "1/0"}, "a" * 3000]  # fmt: skip


def damaged(data, dice):
    """A copy with an odd value, a stolen key or a lost entry somewhere."""
    data = copy.deepcopy(data)
    places = list(_places(data))
    *path, last = dice.choice(places)
    home = data
    for key in path:
        home = home[key]
    if dice.random() < 0.2:
        del home[last]
    elif dice.random() < 0.2 and isinstance(home, dict):
        home[dice.choice(["__class__", "\x1b", "fp32_fma", ""])] = home[last]
    else:
        home[last] = copy.deepcopy(dice.choice(ODD))
    return data


def _places(value, path=()):
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from _places(value[key], (*path, key))


@pytest.mark.parametrize("kind", ["costs", "counters/measurements", "counters/nvprof", "counters/ncu"])
def test_a_damaged_table_is_right_or_one_sentence(kind):
    dice = random.Random(1)
    names = [path for path in sorted((ROOT / kind).glob("*.toml")) if path.name != "descriptions.toml"][:4]
    for at in range(60):
        path = names[at % len(names)]
        text = path.read_text(encoding="utf-8")
        document = Document(str(path), text, damaged(tomli.loads(text), dice))
        try:
            if kind == "costs":
                table, errors = costfile.read(document)
                assert (table is None) == bool(errors)
            elif kind == "counters/measurements":
                mapping.parse(document)
            else:
                definition_files.definition_in(document, path).used()
        except EprofError as err:
            assert ".toml:" in str(err)


# ---- measurements


def test_packed_measurements_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_BYTES", 1 << 20)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    with pytest.raises(EprofError, match="holds more than 1 MB of text"):
        reading.table(tmp_path / "bomb.csv.gz")
    (tmp_path / "small.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 10))
    assert len(reading.table(tmp_path / "small.csv.gz")) == 10


def test_a_parquet_file_of_a_kilobyte_with_a_billion_rows(tmp_path):
    table = pa.table({"a": pa.array(np.zeros(1 << 22))})
    with parquet.ParquetWriter(tmp_path / "bomb.parquet", table.schema, compression="zstd") as writer:
        for _ in range(13):
            writer.write_table(table)
    assert (tmp_path / "bomb.parquet").stat().st_size < 2_000_000
    with pytest.raises(EprofError, match="says that it holds 54,525,952 rows"):
        reading.table(tmp_path / "bomb.parquet")


def test_two_columns_of_one_name(tmp_path):
    (tmp_path / "m.csv").write_text("a, a,b\n1,2,3\n")
    with pytest.raises(EprofError, match="two columns called `a`"):
        reading.table(tmp_path / "m.csv")


# ---- run directories and logs


@pytest.fixture
def home(tmp_path):
    (tmp_path / "r.eprof" / "logs").mkdir(parents=True)
    (tmp_path / "r.eprof" / "logs" / "counters-1.csv").write_bytes(LOG)
    return tmp_path / "r.eprof"


def say(home, **more):
    about = {"schema": directory.SCHEMA, "status": "complete", "command": "./x", "program": ["x"], **more}
    (home / "run.json").write_text(json.dumps(about))


def test_nothing_outside_a_run_directory_is_read(home):
    outside = home.parent / "outside.csv"
    outside.write_bytes(LOG)
    (home / "logs" / "counters-2.csv").symlink_to(outside)
    (home / "logs" / "counters-3.csv").symlink_to("../../outside.csv")
    (home / "logs" / "time-1.csv").symlink_to("/dev/zero")
    os.mkfifo(home / "logs" / "time-2.csv")
    say(home)
    profile = api.load(home, cache=False)
    assert [Path(one.path).name for one in profile.logs] == ["counters-1.csv"]
    assert any("Not read" in one and "energy" not in one for one in profile.warnings)


@pytest.mark.parametrize("table", ["/etc/passwd", "../../etc/hostname", "/dev/zero", "/proc/self/environ"])
def test_run_json_names_no_file_but_a_table(home, table):
    say(home, pricing={"costs": table})
    with pytest.raises(LogError, match=r"no \.toml file"):
        api.load(home, cache=False)


@pytest.mark.parametrize("how", ["pipe", "device", "giant", "deep", "digits"])
def test_run_json_that_is_none(home, how):
    path = home / "run.json"
    if how == "pipe":
        os.mkfifo(path)
    elif how == "device":
        path.symlink_to("/dev/zero")
    elif how == "giant":
        with path.open("wb") as file:
            file.truncate(40 << 30)
    else:
        path.write_text({"deep": '{"a":' * 100_000, "digits": '{"a":' + "9" * 5000 + "}"}[how])
    with pytest.raises(CollectError, match="move it away") as said:
        api.load(home, cache=False)
    assert len(str(said.value)) < 400


def test_a_device_is_no_log_and_a_pattern_passes_over_pipes(tmp_path):
    with pytest.raises(LogError, match="device"):
        api.load("/dev/zero", cache=False)
    (tmp_path / "a.csv").write_bytes(LOG)
    os.mkfifo(tmp_path / "b.csv")
    assert len(api.load(str(tmp_path / "*.csv"), cache=False).logs) == 1


def test_columns_that_unpack_without_end(tmp_path):
    (tmp_path / "columns").write_bytes(gzip.compress(b"a," * (32 << 20)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LogError):
        read_columns(tmp_path / "columns")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_an_error_that_quotes_something_endless_still_says_what_to_do():
    said = str(EprofError(f"a.csv: has no column {'9' * 50_000}; name one with --mapping."))
    assert (
        len(said) < 1500 and said.startswith("a.csv: has no column 9") and said.endswith("; name one with --mapping.")
    )
    assert "48," in said and "more characters" in said
    short = "b.csv: " + "word " * 700
    assert str(EprofError(short)) == short
