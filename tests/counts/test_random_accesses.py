"""Accesses of DRAM at random, as counters tell them: kernels whose accesses are known, through the slow model of caches."""

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st
from test_counts_launches import make

import eprof
from eprof.base.errors import EprofError
from eprof.base.vocabulary import Mark
from eprof.counts import counts, definition_files
from tests.oracle import caches

# No L1, so that every line that a request touches is a request of L2.
GPU = {"sms": 1, "groups": 4, "warps": 64, "local": 49152, "l1_bytes": 0, "l1_ways": 1,
       "l2_bytes": 1 << 17, "l2_ways": 16, "l2_line": 128}  # fmt: skip
WARPS = 8
ARRAY = 1 << 24
WAYS = {"load": ("ld", "read"), "store": ("st", "write")}


def launch(*sites):
    """A launch of 8 warps; a site gives (address, bytes, kind) of an item's number."""
    return [
        [[[(key, *site(32 * group + item)) for key, site in enumerate(sites)] for item in range(32)]]
        for group in range(WARPS)
    ]


def stream(size=4, array=0, kind="load", offset=0):
    return lambda item: (array * ARRAY + size * (item + offset), size, kind)


def scattered(size=4, array=1, kind="load", within=ARRAY // 32):
    """One place in each of many sectors, far from each other: a permutation of those of a region."""
    return lambda item: (array * ARRAY + 32 * (item * 2654435761 % (1 << 32) >> 4) % (32 * within), size, kind)


def seen(groups):
    """What the caches make of it: requested bytes, sectors of L1 and requests of L2 by kind, sectors of L2 and DRAM."""
    model = caches.launch(GPU, groups, 32)
    found = {"load dram": model["dram reads"], "store dram": model["dram writes"] + model["dram left dirty"]}
    for kind in WAYS:
        lines = [sectors for group in groups for k, sectors in caches.trace_of(group) if k == kind]
        found[f"{kind} bytes"] = sum(
            size for group in groups for phase in group for item in phase for _, _, size, k in item if k == kind
        )
        found[f"{kind} sectors"] = model[f"{kind} sectors"]
        found[f"{kind} requests"] = sum(len({sector // 4 for sector in sectors}) for sectors in lines)
    return found


def by_ncu(groups, capability="8.0", without=(), others=(0, 0, 0, 0)):
    """Random accesses by ncu's counters of a kernel that does this.

    others: sectors of DRAM for textures, spills, asynchronous copies, and nothing of the kernel.
    """
    found = seen(groups)
    values = {}
    for kind, (short, way) in WAYS.items():
        values |= {
            f"dram__bytes_{way}.sum": 32 * (found[f"{kind} dram"] + sum(others) * (kind == "load")),
            f"smsp__sass_data_bytes_mem_global_op_{short}.sum": found[f"{kind} bytes"],
            f"l1tex__t_sectors_pipe_lsu_mem_global_op_{short}.sum": found[f"{kind} sectors"],
            f"l1tex__t_sectors_pipe_lsu_mem_local_op_{short}.sum": others[1] * (kind == "load"),
            f"lts__t_requests_srcunit_tex_op_{way}.sum": found[f"{kind} requests"],
            f"lts__t_sectors_srcunit_tex_op_{way}.sum": found[f"{kind} sectors"],
        }
    values["l1tex__t_sectors_pipe_tex_mem_texture.sum"] = others[0]
    if others[2]:
        values["smsp__sass_data_bytes_mem_global_op_ldgsts.sum"] = 32 * others[2]
    kept = {name: value for name, value in values.items() if not any(word in name for word in without)}
    return cell(counts.count(make(kept), definition_files.find("ncu", capability)))


def by_nvprof(groups, capability="6.1", others=(0, 0)):
    """The same by those of a GTX 1080, whose rates are of one second, or of a K20c: its rates are told by those of DRAM."""
    found, (textures, _) = seen(groups), others
    is_kepler = capability == "3.5"
    values = {"tex_cache_transactions": textures + (0 if is_kepler else found["load sectors"])}
    values |= {"l2_tex_read_transactions": textures, "ecc_transactions": 0} if is_kepler else {}
    for kind, (short, way) in WAYS.items():
        dram = found[f"{kind} dram"] + sum(others) * (kind == "load")
        values |= {
            f"dram_{way}_transactions": dram,
            f"dram_{way}_throughput": 32 * dram,
            f"g{short}_throughput": 32 * found[f"{kind} sectors"],
            f"g{short}_requested_throughput": found[f"{kind} bytes"],
        }
        if not is_kepler:
            sectors = found[f"{kind} sectors"] + textures * (kind == "load")
            values |= {f"l2_tex_{way}_transactions": sectors, f"l2_tex_{way}_throughput": 32 * sectors}
    units = {name: "byte_per_s" for name in values if name.endswith("throughput")}
    return cell(counts.count(make(values, units=units), definition_files.find("nvprof", capability)))


def cell(counted):
    # That L2 served less than nothing is true where DRAM moves what it was not asked for.
    assert not [warning for warning in counted.warnings if not warning.startswith("l2")]
    return counted.amounts["random"][0], Mark(int(counted.amount_marks["random"][0]))


ITEMS = 32 * WARPS
# What a kernel does -> accesses at random: a sector of which 4 bytes are used is 28/32 of one that is used for nothing.
KERNELS = {
    "stream": ([stream()], 0),
    "bytes": ([stream(1), stream(2, 1, "store")], 0),
    "misaligned copy": ([stream(offset=1), stream(array=1, kind="store")], 0),
    "all threads read one": ([lambda item: (0, 4, "load"), stream(array=1)], 0),
    "fields of records": ([lambda item, field=field: (32 * item + 4 * field, 4, "load") for field in range(8)], 0),
    "floats at random": ([scattered()], ITEMS * 28 / 32),
    "doubles at random": ([scattered(8)], ITEMS * 24 / 32),
    "stores at random": ([stream(), scattered(kind="store")], ITEMS * 28 / 32),
    "at random beside a stream": ([stream(16), scattered()], ITEMS * 28 / 32),
    # 4 sectors of a line, each in full, over several accesses: L2 has them.
    "columns that fit": ([lambda item, at=at: (128 * (item % 32) + 4 * at, 4, "load") for at in range(32)], 0),
}


@pytest.mark.parametrize("name", KERNELS)
def test_sectors_of_which_part_is_used_are_accesses_at_random(name):
    sites, expected = KERNELS[name]
    groups = launch(*sites)
    for value, mark in (by_ncu(groups), by_ncu(groups, "7.0"), by_nvprof(groups), by_nvprof(groups, "3.5")):
        assert value == pytest.approx(expected, abs=ITEMS / 32)
        assert mark == Mark(0) if name in ("stream", "bytes") else mark in (Mark(0), Mark.ESTIMATED)
        assert mark or not expected


def test_what_else_dram_moves_is_no_access_at_random():
    """Beside records of which half is read: textures, spills and asynchronous copies; beside a stream, whatever it is."""
    fields = [lambda item, field=field: (scattered()(item)[0] + 4 * field, 4, "load") for field in range(4)]
    halves, stream_of_bytes = launch(*fields), launch(*KERNELS["bytes"][0])
    assert by_ncu(halves)[0] == by_ncu(halves, without=("texture", "local"))[0] == ITEMS / 2
    for others in ((500, 0, 0, 0), (0, 500, 0, 0), (0, 0, 500, 0)):
        assert by_ncu(halves, others=others)[0] == ITEMS / 2
    for capability in ("6.1", "3.5"):
        alone, beside = by_nvprof(halves, capability), by_nvprof(halves, capability, others=(500, 0))
        assert beside[0] == pytest.approx(alone[0]) and alone[0] > 0
        assert by_nvprof(stream_of_bytes, capability, others=(0, 500))[0] == 0
    assert by_ncu(stream_of_bytes, others=(0, 0, 0, 500)) == (0, Mark(0))


@pytest.mark.parametrize("kind", WAYS)
def test_only_requests_of_l2_tell_strides_from_accesses_at_random(kind):
    every_other = launch(lambda item: (8 * item, 4, kind))
    skipped = ITEMS * 8 / 32 / 2
    assert by_ncu(every_other) == (0, Mark.ESTIMATED)
    assert by_ncu(every_other, without=("lts__t_requests",))[0] == by_nvprof(every_other)[0] == skipped


def test_a_sector_that_is_used_whole_is_told_by_no_counter():
    """As the microbenchmark `chase` reads them: two vectors a sector."""
    halves = [lambda item, half=half: (scattered()(item)[0] // 32 * 32 + 16 * half, 16, "load") for half in (0, 1)]
    assert by_ncu(launch(*halves))[0] == 0


@pytest.mark.parametrize("without", ["dram__", "mem_global_op_ld.sum", "sass_data_bytes"])
def test_without_the_counters_it_is_not_known(without):
    assert np.isnan(by_ncu(launch(scattered()), without=(without,))[0])


STREAMS = [stream(), stream(8, 2), stream(1, 3), stream(array=4, kind="store"), lambda item: (5 * ARRAY, 4, "load")]


@settings(max_examples=8, deadline=None)
@given(st.sets(st.integers(0, len(STREAMS) - 1)), st.integers(1, 2), st.sampled_from([1, 2, 4, 8]))
def test_it_is_never_above_the_truth_and_streams_change_nothing(chosen, number, size):
    groups = launch(*(STREAMS[place] for place in chosen), *(scattered(size, 6 + place) for place in range(number)))
    truth = number * ITEMS
    # What all threads read counts as asked for by each of them, and hides as much.
    hidden = ITEMS * 4 / 32 if len(STREAMS) - 1 in chosen else 0
    for value, _ in (by_ncu(groups), by_nvprof(groups)):
        assert truth * (1 - size / 32) - hidden - number <= value <= truth


# Share of all sectors of DRAM in real kernels that are known to skip parts: columns of halos, records and pixels in parts.
SKIPPING = {
    "v100-miniweather-baseline.ncu-rep": {"set_halo_values_x_396_gpu", "set_halo_values_x_419_gpu"},
    "v100-miniweather-div-to-mult.ncu-rep": {"set_halo_values_x_396_gpu", "set_halo_values_x_419_gpu"},
    "gtx760-dev1-metrics-summary-lavamd.csv": {"kernel_gpu_cuda"},
    "titan-wide-trace-events-and-metrics.csv": {f"__kernel___forma_kernel__{number}__" for number in (0, 1, 2)},
}
NOISE = 0.05


def test_no_real_kernel_that_streams_has_them():
    """Every log that has the counters."""
    if not SHARED.is_dir():
        pytest.skip("needs the real logs, which are not part of this project")
    told = {}
    for path in sorted(path for folder in ("nvprof", "ncu", "ncu-modern") for path in (SHARED / folder).iterdir()):
        if path.suffix not in (".csv", ".ncu-rep"):
            continue
        try:
            counted = eprof.load(path).counts()
        except EprofError:
            continue
        share = (
            32
            * counted.amounts["random"]
            / np.nansum(counted.amounts.only(["dram_read", "dram_write", "dram"]), axis=1)
        )
        if not np.isnan(share).all():
            kernels = counted.rows.kernel[share > NOISE]
            told[path.name] = {name.partition("(")[0] for name in kernels}
        if path.name.startswith("a100-sxm4"):
            assert counted.amounts["random"].tolist() == counted.amount_marks["random"].tolist() == [0]
    assert len(told) >= 12
    assert {name: kernels for name, kernels in told.items() if kernels} == SKIPPING
