"""Reading measurements: columns by mapping, units, and bad rows, which are named and left out."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from eprof.base.errors import DefinitionError, EprofError
from eprof.lab.measurements import MeasurementError, mappings, read
from eprof.lab.measurements.mapping import load
from eprof.lab.measurements.values import wild

DATA = Path(__file__).parents[3] / "shared" / "data" / "power"


def rows(number=12):
    """A table in eprof's words: `number` kernels at two core clocks."""
    found = []
    for at in range(number):
        for core in (600, 1000):
            found.append(
                {
                    "kernel": f"k{at}",
                    "core_mhz": core,
                    "memory_mhz": 2600,
                    "time_s": 0.5 * (at + 1) * 1000 / core,
                    "measured_power_w": 50.0 + at + core / 50,
                    "fp32": 1e9 * (at + 1) ** 2,
                    "integer": 1e9 * (at + 3),
                    "dram_read": 4e9 * (at + 2),
                    "dram_write": 1e9 * at**1.5,
                }
            )
    return pd.DataFrame(found)


def saved(tmp_path, frame, name="measured.csv"):
    path = tmp_path / name
    frame.to_parquet(path) if name.endswith(".parquet") else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["measured.csv", "measured.csv.gz", "measured.parquet"])
def test_rates_are_counts_over_time(tmp_path, name):
    found = read(saved(tmp_path, rows(), name))
    assert (found.mapping, found.kind, len(found)) == ("eprof-counts", "counts", 24)
    assert found.terms == ("fp32_instruction", "integer_instruction", "dram_byte")
    assert found.domains["dram_byte"] == "memory" and found.domains["fp32_instruction"] == "core"
    assert found.rates["dram_byte"][0] == pytest.approx(8.0 / (0.5 * 1000 / 600))
    assert found.counts()["fp32_instruction"][5] == pytest.approx(9e9)
    assert found.reference == (1000.0, 2600.0)
    part = found.take(found.rows["core_mhz"].to_numpy() == 600)
    assert len(part) == 12 and part.rows.index.tolist() == list(range(12)) and part.terms == found.terms


def test_power_that_a_report_predicts_is_no_measurement(tmp_path):
    frame = rows().rename(columns={"measured_power_w": "power_w"})
    with pytest.raises(MeasurementError, match="neither power nor energy"):
        read(saved(tmp_path, frame))


def test_energy_makes_power_and_must_agree_with_it(tmp_path):
    frame = rows()
    frame["measured_energy_j"] = frame["measured_power_w"] * frame["time_s"]
    both = read(saved(tmp_path, frame))
    alone = read(saved(tmp_path, frame.drop(columns="measured_power_w"), "alone.csv"))
    assert alone.power_w == pytest.approx(both.power_w)
    frame["measured_energy_j"] *= 1e3
    with pytest.raises(MeasurementError, match=r"`measured_energy_j` is 1000 times power times time.*mJ against J"):
        read(saved(tmp_path, frame))
    with pytest.raises(MeasurementError, match="which no GPU does.*units"):
        read(saved(tmp_path, frame.drop(columns="measured_power_w"), "alone.csv"))


@pytest.mark.parametrize(("off", "agrees"), [(1.019, True), (0.981, True), (1.03, False), (0.97, False)])
def test_energy_agrees_with_power_within_two_percent(tmp_path, off, agrees):
    """Of the middle row: one in which they differ may be another run's."""
    frame = rows()
    frame["measured_energy_j"] = frame["measured_power_w"] * frame["time_s"] * off
    frame.loc[0, "measured_energy_j"] *= 1e3
    if agrees:
        assert len(read(saved(tmp_path, frame))) == len(frame)
        return
    with pytest.raises(MeasurementError, match="times power times time in the middle row"):
        read(saved(tmp_path, frame))


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("measured_power_w", np.nan, "power is missing or no number (line 5)"),
        ("measured_power_w", "n/a", "power is missing or no number (line 5)"),
        ("measured_power_w", 0, "power is not above 0 (line 5)"),
        ("measured_power_w", -3, "power is not above 0 (line 5)"),
        ("measured_power_w", 54000, "not between 1 and 3000 W (line 5)"),
        ("core_mhz", np.nan, "a clock is missing or not above 0 (line 5)"),
        ("time_s", 0, "the time is missing or not above 0 (line 5)"),
        ("fp32", np.nan, "a count is missing or no number; fp32_instruction in 1 (line 5)"),
        ("fp32", -1, "a count is negative (line 5)"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_and_left_out(tmp_path, column, value, said):
    frame = rows().astype(object)
    frame.loc[3, column] = value
    found = read(saved(tmp_path, frame))
    assert len(found) == 23 and 5 not in found.rows["line"].tolist()
    assert any(said in note and note.startswith("1 row was left out: ") for note in found.notes), found.notes


def test_rows_that_stand_twice_count_once(tmp_path):
    frame = rows()
    found = read(saved(tmp_path, pd.concat([frame, frame.iloc[[0, 4]]])))
    assert len(found) == 24
    assert "2 rows were left out: the same row stands above (lines 26, 27)." in found.notes
    again = frame.iloc[[0]].assign(measured_power_w=63.0)
    repeated = read(saved(tmp_path, pd.concat([frame, again])))
    assert len(repeated) == 25 and any("measure a benchmark again" in note for note in repeated.notes)


def test_several_files_are_judged_together(tmp_path):
    """Each of the two files is at one core and memory clock; together they are not."""
    slow = rows()[lambda one: (one["core_mhz"] == 600) & (one["memory_mhz"] == one["memory_mhz"].max())]
    fast = rows()[lambda one: (one["core_mhz"] == 1000) & (one["memory_mhz"] == one["memory_mhz"].max())]
    first, second = saved(tmp_path, slow, "slow.csv"), saved(tmp_path, fast, "fast.csv")
    assert any("All rows are at one setting" in note for note in read(first).notes)
    both = read([first, second])
    assert len(both) == len(slow) + len(fast) and not any("one setting" in note for note in both.notes)
    again = saved(tmp_path, slow, "again.csv")
    assert any("measure a benchmark again" in note for note in read([first, again]).notes)
    assert len(read([first, first])) == len(slow)


def test_columns_that_tell_nothing_are_named(tmp_path):
    found = read(saved(tmp_path, rows().assign(fp64=0, warp_issue=lambda one: 7e8 * one["time_s"])))
    assert any(note.startswith("fp64_instruction: 0 in every row") for note in found.notes)
    assert len(found.terms) == 5
    one = read(saved(tmp_path, rows()[rows()["core_mhz"] == 600], "one.csv"))
    assert any("one setting" in note for note in one.notes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"kernel,time_s\n", "has a header but no rows"),
        (b"a,b\n1,2\n", "no column mapping suits these columns (a, b...)"),
        (b"\xff\xfe\x00a", "not a CSV or Parquet"),
        (b'a,b\n1,2\n1,2,3\n"', "not a CSV or Parquet"),
    ],
)
def test_what_is_no_table_is_one_sentence(tmp_path, content, said):
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    with pytest.raises(MeasurementError, match=re.escape(said)) as raised:
        read(path)
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)


def test_files_that_are_not_there_and_files_that_differ(tmp_path):
    with pytest.raises(MeasurementError, match="no such file"):
        read(tmp_path / "nowhere.csv")
    one, other = saved(tmp_path, rows(), "one.csv"), saved(tmp_path, rows().drop(columns="integer"), "other.csv")
    with pytest.raises(MeasurementError, match="do not have the same columns"):
        read([one, other])
    assert len(read([one, saved(tmp_path, rows(3), "third.csv")])) == 30


def test_nothing_usable_is_an_error(tmp_path):
    with pytest.raises(MeasurementError, match="no row can be used.*24 rows were left out"):
        read(saved(tmp_path, rows().assign(measured_power_w=-1)))


def test_a_mapping_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'schema = 1\nname = "mine"\ntitle = "t"\nkind = "utilisation"\n[columns]\nbenchmark = "what"\ncore_mhz = "f"\n'
        'memory_mhz = 877\npower_mw = "p"\n[terms.core]\nfp32_use = "u / 100"\n[terms.memory]\ndram_use = "d / 100"\n'
    )
    frame = pd.DataFrame({"what": ["a", "b"], "f": [500, 1000], "p": [60e3, 90e3], "u": [50, 80], "d": [10, 20]})
    found = read(saved(tmp_path, frame), mapping=str(path), reference=(500, 877))
    assert found.kind == "utilisation" and found.power_w.tolist() == [60.0, 90.0]
    assert found.rates["fp32_use"].tolist() == pytest.approx([0.25, 0.8])
    assert found.rates["dram_use"].tolist() == pytest.approx([0.0877, 0.1754])
    assert found.reference == (500, 877)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "utilisation"', 'kind = "vibes"', "`kind` is 'vibes'; use one of"),
        ('core_mhz = "f"', 'core_lightyears = "f"', "unknown key `core_lightyears`"),
        ('power_mw = "p"\n', "", "must name the power or the energy"),
        ('"u / 100"', '"u ** 2"', "not allowed in a formula"),
        ("schema = 1", "schema = 9", "`schema` must be 1"),
        ("[terms.core]", "[terms.gpu]", "unknown key `gpu`"),
    ],
)
def test_a_mistake_in_a_mapping_is_told_with_its_line(tmp_path, old, new, said):
    text = (
        'schema = 1\nname = "mine"\ntitle = "t"\nkind = "utilisation"\n[columns]\nbenchmark = "what"\ncore_mhz = "f"\n'
        'memory_mhz = 877\npower_mw = "p"\n[terms.core]\nfp32_use = "u / 100"\n'
    )
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(DefinitionError, match=rf"mine\.toml:\d+: .*{re.escape(said)}"):
        load(str(path))


def test_the_mappings_of_the_cellar_are_right():
    names = [one.name for one in mappings()]
    assert len(names) == len(set(names)) >= 6
    for one in mappings():
        assert one.title and (one.terms or one.kind == "energies")
    with pytest.raises(EprofError, match="no column mapping `nope`"):
        load("nope")


FAMILIES = {
    "nvdvfs_counts_gtx980_low": ("nvdvfs-counts", 1080, 30, 9),
    "nvdvfs_counts_p100": ("nvdvfs-counts", 150, 30, 9),
    "nvdvfs_counts_v100": ("nvdvfs-counts-volta", 145, 29, 9),
    "gpmtool_gtxtitanx_micro_named": ("gpmtool", 6528, 102, 8),
    "gpmtool_amd580x": ("gpmtool", 984, 41, 13),
    "nvdvfs_v100_apps": ("nvdvfs-utilisation", 200, 20, 7),
    "gpuptx_gtxtitanx_apps": ("gpuptx", 800, 25, 50),
    "nsfcac_v100_apps": ("nsfcac", 2808, 24, 4),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="no shared measurements here")
@pytest.mark.parametrize("name", FAMILIES)
def test_public_measurements_find_their_mapping(name):
    mapping, number, benchmarks, terms = FAMILIES[name]
    found = read(DATA / f"{name}.csv")
    assert (found.mapping, len(found), found.rows["benchmark"].nunique(), len(found.terms)) == (
        mapping,
        number,
        benchmarks,
        terms,
    )
    assert found.own == (mapping == "gpuptx")


@pytest.mark.skipif(not DATA.is_dir(), reason="no shared measurements here")
def test_the_named_gpu_decides_over_what_the_columns_look_like():
    p100, v100 = DATA / "nvdvfs_counts_p100.csv", DATA / "nvdvfs_counts_v100.csv"
    for device in ("Tesla P100-PCIE-16GB", "P100", "GeForce GTX 1080 Ti", "GTX 980"):
        assert read(v100, device=device).mapping == read(p100, device=device).mapping == "nvdvfs-counts"
    for device in ("Tesla V100-SXM2-32GB", "NVIDIA TITAN V", "V100"):
        assert read(p100, device=device).mapping == "nvdvfs-counts-volta"
    assert read(p100, device="a GPU that nobody knows").mapping == "nvdvfs-counts"


@pytest.mark.skipif(not DATA.is_dir(), reason="no shared measurements here")
@pytest.mark.parametrize(
    ("device", "mapping"),
    [
        ("GeForce RTX 2070 SUPER", "nvdvfs-counts-volta"),
        ("NVIDIA GeForce RTX 4090", "nvdvfs-counts-volta"),
        ("Jetson AGX Xavier", "nvdvfs-counts-volta"),
        ("GeForce GTX 980", "nvdvfs-counts"),
        ("Tesla K40c", None),
    ],
)
def test_counts_of_any_gpu_are_read_or_refused_and_never_dropped(device, mapping):
    path = DATA / "nvdvfs_counts_v100.csv"
    if mapping is None:
        with pytest.raises(MeasurementError, match=r"has counts.* than Tesla K40c has \(3.5\); name with --mapping"):
            read(path, device=device)
        assert read(path, "nvdvfs-counts", device=device).kind == "counts"
        return
    measured = read(path, device=device)
    assert measured.mapping == mapping and len(measured.terms) == 9


def test_a_mapping_may_be_for_all_later_capabilities():
    volta = load("nvdvfs-counts-volta")
    frame = pd.DataFrame({name: [1.0] for name in volta.needs})
    fits = {
        capability: volta.suits(frame, [capability]) for capability in ("7.0", "7.5", "10.0", "12.1", "6.2", "skylake")
    }
    assert fits == {"7.0": True, "7.5": True, "10.0": True, "12.1": True, "6.2": False, "skylake": False}
    assert volta.suits(frame, ["6.2", "8.6"])


@pytest.mark.skipif(not DATA.is_dir(), reason="no shared measurements here")
def test_wild_rows_are_named():
    found = read(DATA / "nsfcac_v100_apps.csv")
    strange = found.rows[wild(found)]
    assert set(strange["kernel"].str.split("/").str[0]) == {"lavamd", "lud"}
    assert any("lavamd" in note and "1343" in note for note in found.notes)
    assert not wild(read(DATA / "gpmtool_gtxtitanx_hpca2018.csv")).any()


def test_the_mapping_of_the_guide_is_right(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "fit.md").read_text()
    example = next(block for block in re.findall(r"```toml\n(.*?)```", text, re.S) if "kind =" in block)
    path = tmp_path / "mine.toml"
    path.write_text(example)
    found = load(str(path))
    assert [term.name for term in found.terms] == ["fp32_instruction", "warp_issue_instruction", "dram_byte"]
    for one in mappings():
        assert f"`{one.name}`" in text


def test_a_report_whose_power_is_predicted_is_refused(tmp_path):
    frame = rows().rename(columns={"measured_power_w": "power_w", "kernel": "benchmark"})
    frame = frame.assign(computation_j=1.0, constant_j=1.0, fp32_fma=1, fp32_add=1, fp32_mul=1, kernel="k")
    with pytest.raises(MeasurementError, match="whose power_w is predicted"):
        read(saved(tmp_path, frame), mapping="eprof")


@pytest.mark.parametrize(("rows", "is_said"), [(1, False), (2, True)])
def test_one_row_is_not_a_term_that_is_the_same_in_every_row(rows, is_said):
    from validation_support import made

    from eprof.lab.measurements import values

    measured = made(benchmarks=1)
    alone = measured.take(np.array([0] * rows))
    assert any("the same in every row" in sentence for sentence in values.notes(alone)) == is_said
