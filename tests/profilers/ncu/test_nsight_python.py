"""Data frames and CSV of nsight-python, in the form of version 1.1.0 (made by its own code)."""

import io

import pandas as pd
import pytest

import eprof
from eprof import EprofError

HEAD = "Annotation,Value,Metric,Kernel,GPU,Host,ComputeClock,MemoryClock,Unit,n"
ABOUT = '"void gemm<float>(float*, int)",NVIDIA A100-SXM4-40GB,vm,1410000,1215000'
METRICS = {
    "gpu__time_duration.sum": ("ns", 1000),
    "dram__bytes_read.sum": ("Kbyte", 4),
    "dram__bytes_write.sum": ("byte", 2000),
}
PROCESSED = (
    "Annotation,Metric,n,AvgValue,StdDev,MinValue,MaxValue,NumRuns,Kernel,GPU,Host,ComputeClock,MemoryClock,Unit,"
    "CI95_Lower,CI95_Upper,RelativeStdDevPct,StableMeasurement,Normalized,Geomean\n"
    f"tiled,gpu__time_duration.sum,128,1000.5,0.7,1000.0,1001.0,2,{ABOUT},ns,999.5,1001.5,0.07,True,False,1000.5\n"
    f"tiled,dram__bytes_read.sum,128,4096.0,0.0,4096.0,4096.0,2,{ABOUT},byte,4096.0,4096.0,0.0,True,False,4096.0\n"
)


def raw(annotations=("tiled", "naive"), sizes=(128, 256), runs=2):
    """A row a metric of each run, and below all of them a derived metric of each."""
    rows, derived = [HEAD], []
    for factor, annotation in enumerate(annotations, 1):
        for size in sizes:
            for _ in range(runs):
                for metric, (unit, value) in METRICS.items():
                    rows.append(f"{annotation},{value * factor * size},{metric},{ABOUT},{unit},{size}")
                derived.append(f"{annotation},4.0,ratio,{ABOUT},byte/ns,{size}")
    return "\n".join([*rows, *derived]) + "\n"


def test_launches_are_put_together_from_the_rows_of_their_metrics():
    profile = eprof.load(pd.read_csv(io.StringIO(raw())))
    frame = profile.energy().to_frame()
    assert list(frame["launches"]) == [8] and list(frame["device"]) == ["NVIDIA A100-SXM4-40GB (0)"]
    scale = (1 + 2) * 2 * (128 + 256)
    assert frame["time_s"][0] == pytest.approx(1e-6 * scale)
    assert frame["dram_read"][0] == pytest.approx(4000 * scale) and frame["dram_write"][0] == pytest.approx(
        2000 * scale
    )


def test_the_csv_is_the_frame(eprof_command, tmp_path):
    path = tmp_path / "profiled_data-f-0.csv"
    path.write_text(raw())
    by_file, by_frame = eprof.load(path), eprof.load(pd.read_csv(path))
    pd.testing.assert_frame_equal(by_file.energy().to_frame(), by_frame.energy().to_frame())
    assert by_file.logs[0].sha256 and by_file.logs[0].format == "ncu-metrics"
    done = eprof_command("report", path)
    assert done.returncode == 0 and "Prices: a100" in done.stdout


def test_annotations_with_their_arguments_are_ranges(tmp_path):
    frame = pd.read_csv(io.StringIO(raw()))
    groups = eprof.load(frame, parts="nvtx").energy().grouped("nvtx").document()["groups"]
    assert {group["name"]: group["launches"] for group in groups} == {
        f"{name} n={size}": 2 for name in ("tiled", "naive") for size in (128, 256)
    }


def test_means_of_the_processed_csv_are_one_launch(tmp_path):
    (tmp_path / "processed.csv").write_text(PROCESSED)
    frame = eprof.load(tmp_path / "processed.csv").energy().to_frame()
    assert (
        frame["time_s"][0] == pytest.approx(1000.5e-9) and frame["dram_read"][0] == 4096 and frame["launches"][0] == 1
    )


def test_cells_without_a_number_are_not_known():
    frame = pd.read_csv(io.StringIO(raw(runs=1).replace("4,dram", ",dram", 1)))
    frame["Value"] = [
        None if metric == "dram__bytes_read.sum" else value
        for metric, value in zip(frame["Metric"], frame["Value"], strict=True)
    ]
    document = eprof.load(frame).energy().document()
    assert document["counts"].get("dram_read", {"value": None})["value"] is None
    assert "missing" in document["marks"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pd.DataFrame({"a": [1]}), "is no result of nsight-python"),
        (pd.DataFrame(), "holds no rows"),
        (pd.read_csv(io.StringIO(PROCESSED.replace("False,1000.5", "naive,1000.5"))), "normalized against naive"),
        (3, "no int"),
    ],
)
def test_other_things_are_refused_in_a_sentence(given, words):
    with pytest.raises(EprofError, match=words):
        eprof.load(given)


def test_a_csv_cut_off_in_a_row_is_refused(tmp_path):
    (tmp_path / "cut.csv").write_text(raw()[:-40])
    with pytest.raises(EprofError, match="cut off"):
        eprof.load(tmp_path / "cut.csv")


def test_frames_and_files_are_joined(tmp_path):
    """Two annotations, one in a frame and one in a file, are two logs of one program."""
    (tmp_path / "naive.csv").write_text(raw(["naive"]))
    both = eprof.load(pd.read_csv(io.StringIO(raw(["tiled"]))), tmp_path / "naive.csv")
    assert len(both.logs) == 2
