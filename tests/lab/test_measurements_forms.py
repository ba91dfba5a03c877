"""Measurements as others write them: separators, units, formulas, several GPUs, repeats, and what is said of doubts."""

import re

import numpy as np
import pandas as pd
import pytest

from eprof.base.errors import DefinitionError
from eprof.lab.fitting import Form, fit
from eprof.lab.fitting.cross_validation import CONSTANT_BASELINE, LINEAR_BASELINE, clock_power, constant_power
from eprof.lab.fitting.quality import examine, no_better
from eprof.lab.fitting.solve import form_without_prior
from eprof.lab.measurements import MeasurementError, read
from eprof.lab.measurements.mapping import Cells, load
from eprof.lab.measurements.values import wild

HEAD = 'schema = 1\nname = "mine"\ntitle = "t"\nkind = "energies"\n[columns]\n'


def rows(kernels=6, cores=(600, 800, 1000), memories=(2600, 3600)):
    """Counts in eprof's words and a power that follows from them and the clocks."""
    random, found = np.random.default_rng(3), []
    for at in range(kernels):
        fp32, integer, dram = random.lognormal(3, 1, 3)
        for core in cores:
            for memory in memories:
                time = 2e-3 * 1000 / core
                power = 20 + 0.02 * core + (0.05 * fp32 + 0.02 * integer + 0.2 * dram) * core / 1000
                found.append(
                    {
                        "kernel": f"k{at}",
                        "core_mhz": core,
                        "memory_mhz": memory,
                        "time_s": time,
                        "measured_power_w": round(power, 3),
                        "fp32": round(fp32 * 1e9 * 2e-3),
                        "integer": round(integer * 1e9 * 2e-3),
                        "dram_read": round(dram * 1e9 * 2e-3),
                        "dram_write": 0,
                    }
                )
    return pd.DataFrame(found)


def saved(tmp_path, frame, name="measured.csv", **how):
    path = tmp_path / name
    frame.to_csv(path, index=False, **how)
    return path


def mapped(tmp_path, text, name="mine.toml"):
    path = tmp_path / name
    path.write_text(HEAD + text)
    return str(path)


@pytest.mark.parametrize(
    "how",
    [
        {"sep": ";"},
        {"sep": "\t"},
        {"sep": ";", "decimal": ","},
        {"sep": "\t", "decimal": ","},
        {"encoding": "utf-8-sig"},
    ],
)
def test_cells_are_told_apart_and_decimal_commas_are_read(tmp_path, how):
    right, found = read(saved(tmp_path, rows())), read(saved(tmp_path, rows(), "other.csv", **how))
    assert found.power_w == pytest.approx(right.power_w)
    assert found.rates.to_numpy() == pytest.approx(right.rates.to_numpy())


def test_a_point_and_a_comma_in_one_file_are_not_guessed_at(tmp_path):
    frame = rows().astype(object)
    frame.loc[2, "measured_power_w"] = "61,5"
    found = read(saved(tmp_path, frame, sep=";"))
    assert any("power is missing or no number (line 4)" in note for note in found.notes)


def test_commas_of_thousands_are_read_where_they_can_be_nothing_else(tmp_path):
    frame = rows().astype(object).assign(fp32=[f"{one:,}" for one in rows()["fp32"] * 100])
    assert read(saved(tmp_path, frame)).counts()["fp32_instruction"][0] == pytest.approx(rows()["fp32"][0] * 100)
    odd = rows().astype(object).assign(measured_power_w="1,234")
    with pytest.raises(MeasurementError, match="power is missing or no number"):
        read(saved(tmp_path, odd))


def test_cells_that_say_their_unit_and_shares_in_per_cent(tmp_path):
    log = pd.DataFrame(
        {
            "what": ["a", "b", "c"],
            "clocks.sm [MHz]": ["300 MHz", "1.5 GHz", "1500000 kHz"],
            "power.draw [W]": ["18.80 W", "93160 mW", "n/a"],
            "use [%]": ["10 %", "95 %", "90 %"],
        }
    )
    text = (
        'benchmark = "what"\ncore_mhz = "clocks.sm [MHz]"\nmemory_mhz = 877\npower_w = "power.draw [W]"\n[terms.core]\n'
    )
    text = HEAD.replace("energies", "utilisation") + text
    path = tmp_path / "mine.toml"
    path.write_text(text + 'gpu_use = "`use [%]` / 100"\n')
    found = read(saved(tmp_path, log), str(path))
    assert found.power_w == pytest.approx([18.8, 93.16])
    assert found.rows["core_mhz"].tolist() == [300, 1500]
    assert found.rates["gpu_use"].tolist() == pytest.approx([0.03, 1.425])
    path.write_text(text + 'gpu_use = "`use [%]`"\n')
    with pytest.raises(MeasurementError, match=r"gpu_use \(`use \[%\]`\) goes up to 95.*/ 100 in the mapping"):
        read(saved(tmp_path, log), str(path))


def test_units_of_clocks_energies_and_times_and_formulas_of_columns(tmp_path):
    frame = pd.DataFrame({"k": ["a", "a", "b"], "f": [1.0, 1.2, 1.0], "n": [10, 10, 20], "t": [5.0, 4.0, 6.0]})
    frame["wh"] = 100 * frame["t"] / 3600
    text = 'benchmark = "k"\ncore_ghz = "f"\nmemory_khz = 877000\ntime_s = "t / n"\nenergy_wh = "wh / n"\n'
    found = read(saved(tmp_path, frame), mapped(tmp_path, text))
    assert found.rows["core_mhz"].tolist() == [1000, 1200, 1000] and found.reference == (1200, 877)
    assert found.rows["time_s"].tolist() == pytest.approx([0.5, 0.4, 0.3])
    assert found.power_w == pytest.approx([100] * 3)
    with pytest.raises(MeasurementError, match=r"core clock is 1 MHz in the middle row.*core_ghz"):
        read(saved(tmp_path, frame), mapped(tmp_path, text.replace("core_ghz", "core_mhz")))
    with pytest.raises(MeasurementError, match=r"no column `f / nowhere`, which the mapping takes for `core_ghz`"):
        read(saved(tmp_path, frame), mapped(tmp_path, text.replace('"f"', '"f / nowhere"')))
    with pytest.raises(DefinitionError, match="must say what `memory_mhz` is"):
        load(mapped(tmp_path, text.replace("memory_khz = 877000\n", "")))


def test_names_in_backticks_and_what_is_said_without_them():
    cells = Cells.parse("32 * (`dram__sectors.sum [sector]` + wr)")
    assert cells.names == {"dram__sectors.sum [sector]", "wr"}
    assert cells({"dram__sectors.sum [sector]": 2, "wr": 1}) == 96
    with pytest.raises(ValueError, match="go in backticks"):
        Cells.parse("dram__sectors.sum")


def test_a_name_that_ends_in_another_unit_is_told(tmp_path):
    frame = pd.DataFrame({"k": ["a", "b"], "f": [1000, 1000], "run_ms": [5.0, 4.0], "draw (W)": [100.0, 90.0]})
    text = 'benchmark = "k"\ncore_mhz = "f"\nmemory_mhz = 877\ntime_s = "run_ms"\npower_w = "draw (W)"\n'
    found = read(saved(tmp_path, frame), mapped(tmp_path, text))
    assert sum("ends in the unit" in note for note in found.notes) == 1
    assert any("`run_ms` ends in the unit ms, but the mapping takes it for `time_s`" in note for note in found.notes)


def test_rows_of_several_gpus_are_an_error_and_numbered_ones_are_told(tmp_path):
    both = pd.concat([rows().assign(gpu="GTX 980"), rows().assign(gpu="Tesla V100")])
    with pytest.raises(MeasurementError, match=r"several GPUs by column `gpu` \(GTX 980, Tesla V100\)"):
        read(saved(tmp_path, both))
    numbered = pd.concat([rows().assign(gpu_id="GPU 0"), rows().assign(gpu_id="GPU 1", measured_power_w=55.0)])
    assert any("Rows are of 2 GPUs by column `gpu_id`" in note for note in read(saved(tmp_path, numbered)).notes)
    one = read(saved(tmp_path, rows().assign(device="GTX 980")))
    assert not any("GPUs" in note for note in one.notes)


def test_repeats_that_differ_and_strays_among_them(tmp_path):
    unlike = pd.concat([rows(), rows().assign(measured_power_w=rows()["measured_power_w"] * 1.7)])
    assert any("Half of them differ by 70 % and more" in note for note in read(saved(tmp_path, unlike)).notes)
    again = pd.concat([rows().assign(measured_power_w=rows()["measured_power_w"] + at / 10) for at in range(5)])
    again = again.reset_index(drop=True)
    again.loc[7, "measured_power_w"] *= 3
    found = read(saved(tmp_path, again))
    assert np.flatnonzero(wild(found)).tolist() == [7]
    assert not any("differ by" in note for note in found.notes)


def test_a_count_without_numbers_is_left_out_and_costs_no_row(tmp_path):
    found = read(saved(tmp_path, rows().assign(special=np.nan)))
    assert len(found) == 36 and "special_instruction" not in found.terms
    assert "special_instruction: no row has a number (special); it is left out." in found.notes
    third = rows().assign(special=np.where(np.arange(36) % 3 == 0, 1e6, np.nan))
    few = read(saved(tmp_path, third))
    assert len(few) == 12
    assert any("special_instruction in 24; --without special_instruction keeps the rows" in one for one in few.notes)
    kept = read(saved(tmp_path, third), without=["special_instruction"])
    assert len(kept) == 36 and kept.untaken == ("special_instruction",)


def test_words_that_no_price_is_made_of_are_named(tmp_path):
    found = read(saved(tmp_path, rows().assign(control=5e6, misc=0)))
    assert any(note.startswith("No price is fitted for control: ") for note in found.notes)
    totals = rows().rename(columns={"kernel": "benchmark", "measured_power_w": "power_w"})
    assert read(saved(tmp_path, totals)).terms == ("fp32_instruction", "integer_instruction", "dram_byte")


def test_times_that_are_too_short_or_too_long(tmp_path):
    with pytest.raises(MeasurementError, match=r"half of the rows do more than .* a second of .*, which no GPU does"):
        read(saved(tmp_path, rows().assign(time_s=rows()["time_s"] / 1e9)))
    long = read(saved(tmp_path, rows().assign(time_s=rows()["time_s"] * 1e6)))
    form = Form(
        starts=1, ridge=0.01, loss="l1", prior={"fp32_instruction": 20, "integer_instruction": 20, "dram_byte": 100}
    )
    quality = examine(long, fit(long, form), replicas=0, leaving_out=())
    assert any("of the predicted power in the middle row, the rest is constant" in note for note in quality.notes)


def test_clocks_that_jitter_and_a_reference_of_one_row_are_told(tmp_path):
    jitter = rows().assign(core_mhz=rows()["core_mhz"] + np.arange(36) / 7)
    assert any(
        "36 of 36 core clocks were measured in one row alone" in note for note in read(saved(tmp_path, jitter)).notes
    )
    lone = pd.concat([rows(), rows().iloc[[0]].assign(core_mhz=1400)])
    assert any("1400 MHz, was measured in one row alone" in note for note in read(saved(tmp_path, lone)).notes)
    assert not any("one row alone" in note for note in read(saved(tmp_path, rows())).notes)


def test_the_nearest_mapping_is_named_with_what_it_lacks(tmp_path):
    with pytest.raises(MeasurementError, match=r"Nearest is eprof-counts, which needs memory_mhz besides"):
        read(saved(tmp_path, rows().drop(columns="memory_mhz")))
    with pytest.raises(MeasurementError, match="share none"):
        read(saved(tmp_path, pd.DataFrame({"a": [1], "b": [2]})))


OWN = 'benchmark = "k"\ncore_mhz = "f"\nmemory_mhz = 877\ntime_s = "t"\npower_w = "p"\n'


def own(tmp_path, clocks_of_b):
    found = [("a", f, 1000 / f, 30 + 0.05 * f) for f in (500, 600, 700, 800, 900)]
    found += [("b", f, 500 / f, 60 + 0.03 * f) for f in clocks_of_b]
    frame = pd.DataFrame(found, columns=["k", "f", "t", "p"])
    return read(saved(tmp_path, frame), mapped(tmp_path, OWN))


def test_a_kernel_of_which_nothing_is_left_is_not_predicted(tmp_path):
    measured = own(tmp_path, [700])
    assert any("measured at one setting only: 1 of 2 (b)" in note for note in measured.notes)
    blind = fit(measured.take(np.arange(5)), form_without_prior(measured))
    assert np.isnan(blind.predict(measured)).tolist() == [False] * 5 + [True]
    quality = examine(measured, fit(measured), replicas=0, leaving_out=("setting",))
    assert quality.errors["leave_one_setting_out"] < 20
    assert any(note.startswith("1 rows could not be predicted with their setting left out") for note in quality.notes)
    whole = own(tmp_path, [500, 600, 700, 800, 900])
    assert not np.isnan(fit(whole).predict(whole)).any()


def test_plain_means_by_hand_and_what_is_said_of_them(tmp_path):
    measured = own(tmp_path, [500, 600, 700, 800, 900])
    watts = measured.power_w
    assert constant_power(measured, measured) == pytest.approx((1 / watts).sum() / (1 / watts**2).sum())
    line = measured.take(np.arange(5))
    assert clock_power(line, line) == pytest.approx(line.power_w)
    held = clock_power(line, measured)
    assert held[5:] == pytest.approx(constant_power(line, line)[0] * held[:5] / line.power_w.mean())
    assert no_better("for kernels that were left out", 5.0, {CONSTANT_BASELINE: 5.1, LINEAR_BASELINE: 6.0}) is None
    said = no_better("at settings that were left out", 5.0, {CONSTANT_BASELINE: 9.0, LINEAR_BASELINE: 2.5})
    assert said is not None and re.match(
        r"No better than a plain mean at settings .* 2\.5 % off there, eprof 5\.0 %", said
    )


def test_a_fit_that_counts_do_not_help_says_so(tmp_path):
    noise = np.random.default_rng(5)
    frame = rows(12).assign(measured_power_w=80 + noise.normal(0, 1, 72))
    frame[["fp32", "integer", "dram_read"]] = noise.lognormal(20, 2, (72, 3))
    measured = read(saved(tmp_path, frame))
    quality = examine(measured, fit(measured, Form(starts=1)), replicas=0)
    assert any(note.startswith("No better than a plain mean for kernels that were left out") for note in quality.notes)
    assert set(quality.plain["leave_one_benchmark_out"]) == {CONSTANT_BASELINE, LINEAR_BASELINE}


def test_a_kernel_that_was_metered_while_idle_is_named(tmp_path):
    frame = rows(12)
    most = frame.groupby("kernel")["measured_power_w"].max().idxmax()
    frame.loc[frame["kernel"] == most, "measured_power_w"] = 14.0
    measured = read(saved(tmp_path, frame))
    form = Form(starts=1, loss="l1")

    def notes_on(rows):
        return examine(rows, fit(rows, form), replicas=0, leaving_out=("benchmark",)).notes

    notes = notes_on(measured)
    assert any(note.startswith("1 of 12 kernels do not go with the others") and f"{most} (" in note for note in notes)
    right = read(saved(tmp_path, rows(12), "right.csv"))
    assert (form_without_prior(measured).loss, form_without_prior(right).loss) == ("l1", "l2")
    assert not any("do not go" in note for note in notes_on(right))


def test_counts_in_eprofs_words_have_times_and_powers_in_other_units(tmp_path):
    right = read(saved(tmp_path, rows()))
    frame = rows().assign(time_us=rows()["time_s"] * 1e6, measured_power_mw=rows()["measured_power_w"] * 1e3)
    found = read(saved(tmp_path, frame.drop(columns=["time_s", "measured_power_w"]), "other.csv"))
    assert found.power_w == pytest.approx(right.power_w)
    assert found.rates.to_numpy() == pytest.approx(right.rates.to_numpy())
    with pytest.raises(MeasurementError, match=r"no column of times \(time_s, time_ms, time_us, time_ns\)"):
        read(saved(tmp_path, rows().drop(columns="time_s"), "none.csv"))


def test_rows_with_more_cells_than_the_header_are_not_shifted(tmp_path):
    right = read(saved(tmp_path, rows()))
    header, *lines = rows().to_csv(index=False).splitlines()
    path = tmp_path / "other.csv"
    path.write_text("\n".join([header, *(f"{line}," for line in lines)]) + "\n")
    trailing = read(path)
    path.write_text("\n".join([header, *(f"r{at},{line}" for at, line in enumerate(lines))]) + "\n")
    named = read(path)
    for found in (trailing, named):
        assert found.power_w == pytest.approx(right.power_w)
        assert found.rows["kernel"].tolist() == right.rows["kernel"].tolist()
    path.write_text("\n".join([header, f"{lines[0]},7", *lines[1:]]) + "\n")
    with pytest.raises(MeasurementError, match="rows have more cells than its header"):
        read(path)
    indexed = tmp_path / "indexed.parquet"
    rows().set_index("kernel").to_parquet(indexed)
    assert read(indexed).power_w == pytest.approx(right.power_w)
