"""Advice: no sentence names a profiler that the GPUs at hand cannot run, or a capability that no definition is for."""

import pytest
from logs_support import METRICS, USAGE, metric, profiled, write

from eprof.base.errors import LogError
from eprof.counts import definition_files
from eprof.profile import api, device
from eprof.profilers import advice

NCU = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    '"0","7","p","h","axpy()","1","7","(1,1,1)","(1,1,1)","0","{}","s","smsp__inst_executed.sum","inst","5"\n'
)


@pytest.mark.parametrize(
    ("capabilities", "named", "not_named"),
    [
        (["2.0"], "nvprof", "nsys"),
        (["3.5"], "nvprof", "nsys"),
        (["6.1"], "nvprof nsys", ""),
        (["7.2"], "nvprof nsys", ""),
        (["7.5"], "nsys", "nvprof"),
        (["8.0"], "nsys", "nvprof"),
        (["12.1"], "nsys", "nvprof"),
        (["6.0", "8.0"], "nsys", "nvprof"),
        (["3.5", "7.0"], "nvprof", "nsys"),
        (["3.5", "8.0"], "nvprof nsys Volta) Pascal", ""),
        ([None], "nvprof nsys Volta) Pascal", ""),
        ([], "nvprof nsys Volta) Pascal", ""),
        (["8.0", None], "nsys", ""),
        (["simulated"], "nvprof nsys", ""),
    ],
)
def test_times_are_asked_of_a_profiler_that_all_gpus_can_run(capabilities, named, not_named):
    said = advice.commands(advice.TIMES, capabilities)
    assert all(word in said for word in named.split()), said
    assert not any(word in said for word in not_named.split()), said


def untimed(path):
    (said,) = [one for one in api.load(path).energy().warnings if one.startswith("The time of")]
    return said


@pytest.mark.parametrize(
    ("device", "named", "not_named"),
    [("Tesla K20c (0)", "nvprof --print", "nsys"), ("Tesla P100-PCIE-16GB (0)", "nsys stats", "ncu")],
)
def test_a_log_without_times_says_how_this_gpu_is_timed(tmp_path, device, named, not_named):
    text = profiled(1, METRICS, metric("inst_integer", 5, device=device))
    said = untimed(write(tmp_path, text))
    assert named in said and not_named not in said


@pytest.mark.parametrize("capability", ["7.5", "8.0", "9.0"])
def test_a_log_of_ncu_is_never_sent_to_nvprof(tmp_path, capability):
    said = untimed(write(tmp_path, NCU.format(capability)))
    assert "nsys stats" in said and "nvprof" not in said


def test_pairs_of_counters_that_disagree_name_the_better_way_of_this_gpu(tmp_path):
    names = ["dram_read_transactions", "dram_read_throughput", "l2_read_transactions", "l2_read_throughput"]
    rows = [
        metric(name, value, device="Tesla V100-SXM2-16GB (0)")
        for name, value in zip(names, ["1000000", "32.0GB/s", "1000000", "12.0GB/s"], strict=True)
    ]
    warnings = api.load(write(tmp_path, profiled(1, METRICS, *rows))).energy().warnings
    (said,) = [one for one in warnings if one.startswith("The times that pairs")]
    assert "A trace (nvprof --print-gpu-trace --csv or nsys stats --report cuda_gpu_trace --format csv)" in said


@pytest.mark.parametrize(
    ("text", "named", "not_named"),
    [
        (NCU.format("8.0").replace('"Stream",', "").replace('"1","7","(1', '"1","(1'), "nsys stats", "nvprof"),
        (profiled(1, METRICS, metric("inst_integer", 5)), "nvprof --print", "ncu"),
    ],
)
def test_streams_are_asked_of_a_profiler_of_this_gpu(tmp_path, text, named, not_named):
    with pytest.raises(LogError, match="none of these logs tells streams") as err:
        api.load(write(tmp_path, text), parts="stream")
    assert named in str(err.value) and not_named not in str(err.value).replace("none", "")


def test_times_without_a_device_are_asked_again_of_their_own_profiler(tmp_path):
    counted = [metric("inst_integer", 5, device=f"Tesla V100-SXM2-16GB ({number})") for number in (0, 1)]
    summary = 'Time (%),Total Time (ns),Instances,Avg (ns),Name\n90.0,300,2,150.0,"axpy(int, float*)"\n'
    usage = profiled(2, USAGE, "%,ms,,ms,ms,ms,", '100,5,1,5,5,5,"axpy(int, float*)"')
    paths = [write(tmp_path, profiled(1, METRICS, *counted), "c.csv"), write(tmp_path, summary, "t.csv")]
    (said,) = [one for one in api.load(*paths).warnings if "do not tell their device" in one]
    assert "make a log with `nsys stats --report cuda_gpu_trace --format csv`" in said
    (said,) = [one for one in api.load(paths[0], write(tmp_path, usage, "u.csv")).warnings if "their device" in one]
    assert "make a log with `nvprof --print-gpu-trace --csv`" in said


# ---------------------------------------------------------------------------------------------- what is not offered


@pytest.mark.parametrize(
    ("names", "profiler"), [(["inst_executed"], "nvprof"), (["smsp__inst_executed.sum", "l1tex__t_bytes.sum"], "ncu")]
)
def test_a_capability_is_only_suggested_if_a_definition_is_for_it(names, profiler):
    may_be = device.identify(None, None, names, profiler).may_be
    assert len(may_be) > 1
    assert all(definition_files.find(profiler, suggested).profiler == profiler for suggested in may_be)


def test_a_log_with_no_metric_but_times_has_no_empty_list(tmp_path):
    text = NCU.format("8.0").replace("smsp__inst_executed.sum", "gpu__time_duration.sum").replace('"inst"', '"ns"')
    warnings = " ".join(api.load(write(tmp_path, text)).warnings)
    assert "the log has no metric but times; `eprof counters` lists what to ask ncu for" in warnings


@pytest.mark.parametrize("said", ['Metric "" cannot be found on device 0.', "Metric(s) cannot be found on device 0."])
def test_a_counter_that_is_not_named_is_not_quoted(tmp_path, said):
    text = profiled(1, METRICS, metric("inst_integer", 5)) + f"==1== Warning: {said}\n"
    (note,) = [one for one in api.logs.read(write(tmp_path, text)).notes if "counters that were asked for" in one]
    assert note == "this GPU does not have all counters that were asked for (line 6)"


@pytest.mark.parametrize(
    ("capability", "named"), [("7.5", "Nsight Compute"), ("12.1", "Nsight Compute"), ("2.1", "older CUDA toolkit")]
)
def test_who_counts_where_nvprof_does_not(tmp_path, capability, named):
    text = f"==1== Warning: Profiling is not supported on devices with compute capability {capability}.\n"
    with pytest.raises(LogError, match=named):
        api.logs.read(write(tmp_path, profiled(1, text)))
