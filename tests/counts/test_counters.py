"""Counter definitions: every file loads, every check of the loader has a broken example that triggers it."""

import re

import pytest

from eprof.base import gpus, resources
from eprof.base.errors import DefinitionError
from eprof.base.vocabulary import COUNTS, LEVEL_PARTS, OF_GPUS
from eprof.counts import definition_files
from eprof.counts.definition import SECTIONS

GOOD = """schema = 1
applies = { profiler = "nvprof", capability = ["9.9"] }
source = "a test"
extends = "nvprof/kepler-3.5.toml"
"""
ALONE = """schema = 1
applies = { profiler = "toy", capability = ["1.0"] }
source = "a test"
[counter]
fma = ["flop_count_dp_fma", "flops_dp_fma"]
rest = { slices = "sub{}_rest", expect = 2 }
some = { slices = "sub{}_some", expect = 4, partial = true }
eff = { name = "efficiency", unit = "percent" }
[parameter]
bytes = { value = 128, why = "a line" }
[quantity]
twice = [{ formula = "2 * fma" }]
[instruction]
integer = [{ formula = "twice * eff" }, { formula = "rest", mark = "estimated", note = "worse" }]
[bytes]
dram_read = [{ formula = "bytes * rest" }, { formula = "some", mark = "estimated", note = "not all" }]
[absent]
"""
ALONE += "\n".join(
    f'{word} = "none"' for word in COUNTS if word not in ("integer", "dram_read") and "_" not in word[:5]
)
REST = [word for word in COUNTS if word not in ("integer", "dram_read") and "_" in word[:5]]
ALONE += "\n" + "\n".join(f'{word} = "none"' for word in REST) + "\n"


@pytest.mark.parametrize("path", definition_files.definition_files(), ids=str)
def test_every_definition_file_loads(path):
    definition = definition_files.load(path)
    assert definition.source and definition.profiler_names
    unspoken = {word for section in ("flop", "cycle", "access") for word in SECTIONS[section]}
    for word in set(COUNTS) - definition.not_here - set(LEVEL_PARTS) - unspoken:
        for books in ("served", "accessed"):
            told = definition.entries(word, books) or word in definition.absent or word in definition.uncountable
            assert told, f"{word} in {books} books"
    for entries in (
        *definition.quantities.values(),
        *(e for section in definition.words.values() for e in section.values()),
    ):
        for entry in entries:
            assert bool(entry.mark) <= bool(entry.note), f"{entry.formula.text}: a mark without a note"


def test_a_definition_of_a_cpu_need_not_speak_of_what_only_gpus_have():
    lines = [line for line in ALONE.splitlines() if line.partition(" = ")[0] not in OF_GPUS]
    on_gpu = "\n".join(lines)
    on_cpu = on_gpu.replace('["1.0"] }', '["zen4"], processor = "cpu" }')
    with pytest.raises(DefinitionError, match="is neither counted|is not counted"):
        definition_files.load(on_gpu)
    definition = definition_files.load(on_cpu)
    assert (definition.processor, definition.capabilities) == ("cpu", ("zen4",))
    assert definition.not_here == set(OF_GPUS)


def test_the_generations_of_nvprof_are_all_there():
    known = {one for item in definition_files.definitions() if item.profiler == "nvprof" for one in item.capabilities}
    assert known == {"2.0", "2.1", "3.0", "3.2", "3.5", "3.7", "5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2"}


def test_find_names_the_known_ones():
    assert definition_files.find("nvprof", "3.7").name == "nvprof/kepler-3.5"
    with pytest.raises(DefinitionError, match=r"capability 8\.0; definitions exist for 2\.0, .*7\.2"):
        definition_files.find("nvprof", "8.0")
    with pytest.raises(DefinitionError, match="no definition is for `zprof`"):
        definition_files.find("zprof", "8.0")


def test_named():
    assert (
        definition_files.named("kepler-3.5").name
        == definition_files.named("nvprof/kepler-3.5").name
        == definition_files.named("3.5").name
    )
    with pytest.raises(DefinitionError, match=r"`voodoo`\. Known: nvprof/fermi"):
        definition_files.named("voodoo")


def test_a_file_can_extend_a_whole_definition():
    definition = definition_files.load(GOOD)
    assert definition.capabilities == ("9.9",)
    assert definition.profiler_names == definition_files.find("nvprof", "3.5").profiler_names


def test_a_later_file_replaces_what_it_says_anew(tmp_path):
    text = GOOD + '[uncountable]\ninteger = "no such counter"\n[served]\nl2_read = [{ formula = "32 * l2_read" }]\n'
    path = tmp_path / "mine.toml"
    path.write_text(text)
    definition = definition_files.definitions(tmp_path)[0]
    assert definition.name == "nvprof/mine"
    assert definition.entries("integer", "served") == ()
    assert [entry.formula.text for entry in definition.entries("l2_read", "served")] == ["32 * l2_read"]
    assert len(definition_files.definitions(path)) == len(definition_files.definitions()) + 1
    assert definition_files.find("nvprof", "9.9", path).name == "nvprof/mine"
    with pytest.raises(DefinitionError, match="no such file"):
        definition_files.definitions(tmp_path / "none")


def test_extends_looks_beside_the_file_first(tmp_path):
    (tmp_path / "base.toml").write_text(ALONE)
    (tmp_path / "top.toml").write_text(
        'schema = 1\napplies = { profiler = "toy", capability = ["2.0"] }\nsource = "t"\nextends = "base.toml"\n'
    )
    assert definition_files.load(tmp_path / "top.toml").name == "toy/top"
    (tmp_path / "loop.toml").write_text(ALONE.replace("schema = 1\n", 'schema = 1\nextends = "loop.toml"\n'))
    with pytest.raises(DefinitionError, match=r"loop.toml:2: `loop.toml` extends itself"):
        definition_files.load(tmp_path / "loop.toml")


def test_the_toy_loads():
    definition = definition_files.load(ALONE)
    assert {
        "flop_count_dp_fma",
        "flops_dp_fma",
        "sub0_rest",
        "sub1_rest",
        "sub3_some",
        "efficiency",
    } <= definition.profiler_names
    way = definition.entries("integer", "served")[0]
    assert (way.formula.text, definition.expand(way.formula)) == (
        "twice * eff",
        "(2 * flop_count_dp_fma) * efficiency",
    )
    assert definition.counters_of(way.formula) == ["efficiency", "flop_count_dp_fma", "flops_dp_fma"]
    assert definition.absent["fp64_fma"] == "none"


def test_several_words_may_have_one_reason():
    together = ALONE.replace('conversion = "none"\n', "").replace('l2_read = "none"', '"l2_read conversion" = "none"')
    assert together != ALONE
    alone, joined = (definition_files.load(text) for text in (ALONE, together))
    assert alone.absent == joined.absent and alone.words == joined.words


# What is changed in the good file (old text, new text), then where the message must point and what it must say.
BROKEN = [
    ("schema = 1", "schema = 2", "schema = 2", "`schema` must be 1"),
    ("[counter]", "[counters]", "[counters]", "unknown key `counters`"),
    ('applies = { profiler = "toy", capability = ["1.0"] }', "", "", "`applies` is missing"),
    ('profiler = "toy", ', "", "applies", "`profiler` is missing; it must be a text"),
    ('["1.0"]', '["1,0"]', "applies", "`applies.capability` must be a list"),
    ('["1.0"]', '["1.0"], chip = "a"', "applies", "unknown key `chip`"),
    ('source = "a test"', 'source = ""', "source", "`source` must be a text"),
    ('source = "a test"', 'source = "a"\nextends = "nvprof/nowhere.toml"', "extends", "neither beside this file"),
    ('source = "a test"', 'source = "a"\nextends = 3', "extends", "`extends` names files"),
    ("twice = ", 'again = [{ formula = "fma" }]\ntwice = ', "again = ", "`again` is declared but no formula uses it"),
    ("eff = {", 'more = "x"\neff = {', "more = ", "`more` is declared but no formula uses it"),
    ("bytes = {", 'b = { value = 1, why = "x" }\nbytes = {', "b = {", "`b` is declared but no formula uses it"),
    ('unit = "percent"', 'unit = "watt"', "eff = ", "use one of: count, percent, byte_per_s"),
    ('unit = "percent"', 'units = "percent"', "eff = ", "unknown key `units`"),
    ('eff = { name = "efficiency", unit = "percent" }', "eff = 3", "eff = ", "a counter is a name"),
    ('eff = { name = "efficiency"', "eff = { name = [3]", "eff = ", "`name` must be a text, not 3"),
    ("expect = 2", "expect = 0", "rest = ", "`slices` is a name with one {} in it"),
    ("sub{}_rest", "sub_rest", "rest = ", "`slices` is a name with one {} in it"),
    ('slices = "sub{}_rest", expect = 2', "slices = []", "rest = ", "or a list of names"),
    ('"sub{}_rest", expect = 2', '["a", "b"], expect = 2', "rest = ", "or a list of names"),
    ('slices = "sub{}_rest", expect = 2', "slices = 2", "rest = ", "or a list of names"),
    (
        "fma = [",
        'same = ["flop_count_dp_fma", "flops_dp_fma"]\nfma = [',
        "fma = [",
        "`fma` is the same counter as `same`",
    ),
    ("twice = ", "fma = ", "fma = [{ f", "`fma` is already a counter"),
    ("eff = {", '"a b" = "c"\neff = {', '"a b"', "cannot be used in a formula"),
    ("bytes = { value = 128", 'bytes = { value = "128"', "bytes = {", "`value` must be a number"),
    (', why = "a line"', "", "bytes = {", "`why` is missing; it must be a text"),
    ('"2 * fma"', '"2 * fmaa"', "twice = ", "uses `fmaa`, which is not defined here"),
    ('"2 * fma"', '"2 ** fma"', "twice = ", "not allowed in a formula"),
    ('"2 * fma"', '"fma ^ 2"', "twice = ", "not allowed in a formula"),
    ('"2 * fma"', '"2 * twice + fma"', "twice = ", "`twice` is made of itself"),
    ('[{ formula = "2 * fma" }]', '"2 * fma"', "twice = ", "`twice` must be a list of { formula"),
    ('[{ formula = "2 * fma" }]', '["2 * fma"]', "twice = ", "must be a table of keys and values"),
    ('{ formula = "2 * fma" }', '{ formula = "2 * fma", unit = "x" }', "twice = ", "unknown key `unit`"),
    (
        '{ formula = "2 * fma" }',
        "{ formula = 2 }",
        "twice = ",
        "`formula` must be a formula, written as a text, not 2.",
    ),
    (
        'mark = "estimated", note = "worse"',
        'mark = "wrong", note = "worse"',
        "integer = ",
        "`mark` is 'wrong'; use one of: estimated, assumed, missing",
    ),
    ('mark = "estimated", note = "worse"', 'mark = "estimated"', "integer = ", "`note` is missing; it must be a text"),
    (
        'mark = "estimated", note = "not all"',
        'note = "not all"',
        "dram_read = ",
        "a sum over some of the slices is not exact",
    ),
    ('note = "worse"', 'mark_if = "other", note = "worse"', "integer = ", "uses `other`"),
    ('"rest", mark = "estimated"', '"rest", mark_if = "rest"', "integer = ", "`mark_if` names the counters"),
    ("integer = ", "integr = ", "integr = ", "`integr` is not a word for instruction"),
    ("dram_read = ", "special = ", "special = ", "`special` is not a word for bytes"),
    ("[absent]", '[absent]\nether = "none"', "ether = ", "`ether` is not a word of the vocabulary"),
    ('conversion = "none"', 'conversion = ""', "conversion = ", "`conversion` must be a text, not ''"),
    ('conversion = "none"', "", "[instruction]", "`conversion` is neither counted nor said to be absent"),
    ('l2_read = "none"', "", "", "`l2_read` is not counted (served bytes)"),
    ("[absent]", '[absent]\ninteger = "none"', 'integer = "none"', "`integer` is both counted and absent"),
    (
        "[absent]",
        '[served]\ndram_read = [{ formula = "rest" }]\n[absent]',
        'dram_read = [{ formula = "rest"',
        "stands in [bytes] and in [served]",
    ),
    ("[absent]", "[check]\nleft = 1\n[absent]", "[check]", "write [[check]]"),
    ("[absent]", '[[check]]\nleft = "fma"\n[absent]', "[[check]]", "`right` is missing; it must be a formula"),
    (
        "[absent]",
        '[[check]]\nleft = "fma"\nright = "fma"\nrelation = "=="\nnote = "x"\n[absent]',
        "[[check]]",
        "`tolerance` is missing; it must be a number",
    ),
    (
        "[absent]",
        '[[check]]\nleft = "fma"\nright = "fma"\nrelation = ">="\n[absent]',
        'relation = ">="',
        "`relation` is '>='; use one of: ==, <=.",
    ),
    (
        "[absent]",
        '[[check]]\nleft = "fma"\nright = "f"\nrelation = "=="\ntolerance = 0.1\nnote = "x"\n[absent]',
        'right = "f"',
        "uses `f`",
    ),
    (
        "[absent]",
        '[[check]]\nleft = "fma"\nright = "fma"\nrelation = "=="\ntolerance = 0.1\n[absent]',
        "[[check]]",
        "`note` is missing; it must be a text",
    ),
    ("[absent]", "[[check]]\nwrong = 1\n[absent]", "wrong = 1", "unknown key `wrong`"),
    ("[absent]", '[[time_pair]]\nbytes = "fma"\nrate = "effy"\n[absent]', 'rate = "effy"', "uses `effy`"),
    ("[absent]", "[absent", "[absent", "not valid TOML"),
    ("[absent]", '[absent]\n"conversion l2_read" = "x"', "conversion = ", "`conversion` has another reason above"),
    ("[absent]", '[absent]\n" " = "x"', '" " = ', "is not a word of the vocabulary"),
]


@pytest.mark.parametrize(("old", "new", "where", "message"), BROKEN, ids=[one[3] + "/" + one[1][:30] for one in BROKEN])
def test_a_broken_definition_says_what_and_where(old, new, where, message):
    assert ALONE.count(old) >= 1
    text = ALONE.replace(old, new, 1)
    with pytest.raises(DefinitionError) as caught:
        definition_files.load(text)
    said = str(caught.value)
    assert message in said
    line = re.match(r"<text>:(\d+): ", said)
    assert line, said
    if where:
        assert where in text.splitlines()[int(line[1]) - 1], said


def test_two_built_in_definitions_of_one_capability_are_refused(monkeypatch):
    path = next(path for path in definition_files.definition_files() if path.name == "fermi.toml")
    monkeypatch.setattr(
        definition_files,
        "definition_files",
        lambda *_: [path, resources.folder("counters") / "nvprof" / "kepler-3.0.toml"],
    )
    monkeypatch.setattr(
        definition_files,
        "load",
        lambda one, load=definition_files.load: load(path) if one is path else _renamed(load(path)),
    )
    monkeypatch.setattr(definition_files, "_LOADED", {})
    definition_files._builtin.cache_clear()
    with pytest.raises(DefinitionError, match=r"nvprof 2\.0 is already defined in"):
        definition_files.definitions()
    monkeypatch.undo()
    definition_files._builtin.cache_clear()
    assert definition_files.definitions()


def _renamed(definition):
    from msgspec.structs import replace

    return replace(definition, label="other.toml")


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("Tesla K20c (0)", "3.5"),
        ("GeForce GTX 760 (1)", "3.0"),
        ("GeForce GTX TITAN (0)", "3.5"),
        ("GK20A (0)", "3.2"),
        ("NVIDIA Tegra X1", "5.3"),
        ("GeForce GTX 950 (0)", "5.2"),
        ("NVIDIA GeForce GTX 1080 (0)", "6.1"),
        ("TITAN X (Pascal) (0)", "6.1"),
        ("Tesla P100-PCIE-16GB (0)", "6.0"),
        ("GeForce GTX 1070 with Max-Q Design", "6.1"),
        ("Tesla V100-SXM2-16GB (0)", "7.0"),
        ("Tesla V100-DGXS-32GB", "7.0"),
        ("Quadro RTX 5000 with Max-Q Design", "7.5"),
        ("NVIDIA A100-SXM4-40GB", "8.0"),
        ("NVIDIA A100 80GB PCIe", "8.0"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA GeForce RTX 5070", "12.0"),
    ],
)
def test_capability_of_a_device(name, capability):
    assert definition_files.capability_of(name) == (capability,)


def test_reused_and_unknown_names():
    assert definition_files.capability_of("GeForce GT 630 (1)") == ("2.1", "3.0", "3.5")
    assert definition_files.capability_of("GeForce GTX 860M") == ("3.0", "5.0")
    assert definition_files.capability_of("Graphics Device (0)") == ()
    assert definition_files.capability_of("Radeon VII") == ()


def test_device_list_is_tidy():
    known = gpus.capabilities_by_name()
    assert len(known) > 400
    for name, capabilities in known.items():
        assert len(set(capabilities)) == len(capabilities), f"{name} stands twice in one list"
        assert all(re.fullmatch(r"\d+\.\d", one) for one in capabilities)


def test_guess_capability_by_the_counters():
    fermi = ["l2_subp0_read_sector_queries", "fb0_subp0_read_sectors", "gld_inst_8bit"]
    kepler = ["l2_l1_read_transactions", "l2_read_transactions"]
    pascal = ["inst_fp_16", "dram_read_bytes", "ecc_transactions", "flop_count_hp_fma"]
    assert definition_files.guess_capability(fermi, "nvprof") == ("2.0", "2.1")
    assert "3.5" in definition_files.guess_capability([*kepler, "no_such_counter"], "nvprof")
    assert definition_files.guess_capability(pascal, "nvprof") == ("6.0", "6.1")
    assert definition_files.guess_capability(["no_such_counter"], "nvprof") == ()
    assert definition_files.guess_capability(kepler, "ncu") == ()


def test_descriptions_lead_to_names_misspelt_or_not():
    known = definition_files.descriptions()
    for text in ("Floating Point Operations(Double Precison FMA)", "Floating Point Operations(Double Precision FMA)"):
        assert known[text] == "flop_count_dp_fma"
    assert known["Floating Point Operation(Single Precision Mul)"] == "flop_count_sp_mul"
    assert known["Shared Load Transactions"] == "shared_load_transactions"
    assert known["Multiprocessor Activity"] == "sm_efficiency"


def test_the_examples_of_the_documentation(tmp_path):
    text = (resources.folder("counters").parent / "docs" / "counters.md").read_text(encoding="utf-8")
    short, long = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    definition = definition_files.load(short)
    assert definition.capabilities == ("5.1",) and definition.uncountable["special"] == "this chip has no such counter"
    assert not definition.entries("special", "served")
    tables = re.findall(r"^\[+(\w+)\]+", long, re.MULTILINE)
    assert set(tables) == {*definition_files._TABLES, *definition_files._LISTS}
