"""Groups: every kernel in one, all of them together the whole."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eprof
from eprof.base.errors import UsageError
from eprof.logs.log import KernelRows
from eprof.profile.grouping import OTHER, parse

SAMPLE = Path(__file__).parents[2] / "samples" / "logs" / "invented"


@pytest.fixture(scope="module")
def energy():
    """Six kernels of the FMM: invented numbers in nvprof's format."""
    return eprof.load(SAMPLE / "tk1-fmm-counters.csv", SAMPLE / "tk1-fmm-times.csv").energy("jetson-tk1")


def kernels(names, devices=None):
    zeros = np.zeros(len(names))
    devices = np.array(devices or [None] * len(names), dtype=object)
    return KernelRows(devices, np.array(names, dtype=object), launches=zeros, time_s=zeros, time_marks=zeros)


RULES = ("^(u|w|x)_list=near", "^v_list=far", "^(up|down)=tree")


def test_groups_add_up_to_the_whole(energy):
    document = energy.grouped(*RULES).document()
    groups = document["groups"]
    assert [one["name"] for one in groups] == ["near", "far", "tree"]
    assert sorted(place for one in groups for place in one["kernels"]) == list(range(6))
    for part in ("computation", "data", "constant", "total"):
        assert math.fsum(one["energy_j"][part] for one in groups) == pytest.approx(document["energy_j"][part])
    for word, cell in document["counts"].items():
        for key in ("value", "energy_j"):
            if cell[key] is not None:
                assert math.fsum(one["counts"][word][key] for one in groups) == pytest.approx(cell[key]), word
    assert math.fsum(one["time_s"] for one in groups) == pytest.approx(document["time_s"])
    assert sum(one["launches"] for one in groups) == document["launches"]
    json.dumps(document, allow_nan=False)


def test_a_group_is_its_kernels(energy):
    document = energy.grouped(*RULES).document()
    for group in document["groups"]:
        members = [document["kernels"][place] for place in group["kernels"]]
        assert group["energy_j"]["total"] == pytest.approx(math.fsum(one["energy_j"]["total"] for one in members))
        assert group["power_w"] == pytest.approx(group["energy_j"]["total"] / group["time_s"])
    far = document["groups"][1]
    assert far["intensity_flop_per_byte"] == pytest.approx(
        document["kernels"][far["kernels"][0]]["intensity_flop_per_byte"]
    )


def test_the_first_rule_wins_and_the_rest_is_other():
    grouping = parse(["a=first", "b=second"])
    names = grouping.names(kernels(["ab", "b", "c"]))
    assert names == ["first", "second", OTHER]
    assert list(grouping.members(kernels(["c", "ab", "b"]))) == ["first", "second", OTHER]


def test_two_rules_of_one_name_are_one_group():
    members = parse(["^a=x", "^b=x"]).members(kernels(["a", "b", "c"]))
    assert {name: places.tolist() for name, places in members.items()} == {"x": [0, 1], OTHER: [2]}


def test_the_last_equals_sign_parts_pattern_and_name():
    assert parse(["N=4.*=four"]).names(kernels(["f<N=4>", "g"])) == ["four", OTHER]


def test_by_device():
    grouping = parse(["device"])
    assert grouping.names(kernels(["a", "a", "b"], ["K20c (0)", "K20c (1)", None])) == [
        "K20c (0)",
        "K20c (1)",
        "GPU not named",
    ]
    assert grouping.how == "by device"


def test_a_rule_that_matches_nothing_is_told(energy):
    document = energy.grouped("^u_list=near", "nothing=lost").document()
    assert [one["name"] for one in document["groups"]] == ["near", OTHER]
    assert any("No kernel is in the group lost" in warning for warning in document["warnings"])


@pytest.mark.parametrize("text", ["", "near", "=near", "u_=", "u_= ", "(=near", "[=x"])
def test_rules_that_are_none(text):
    with pytest.raises(UsageError, match="--group"):
        parse([text])


def test_device_goes_alone_and_nothing_is_nothing(energy):
    with pytest.raises(UsageError, match="no other"):
        parse(["device", "a=b"])
    assert parse([]) is None
    assert "groups" not in energy.document()


@given(
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=8),
    st.lists(st.sampled_from("abc"), max_size=4),
)
def test_every_kernel_is_in_exactly_one_group(names, patterns):
    grouping = parse([f"{pattern}=group {at}" for at, pattern in enumerate(patterns)] or ["device"])
    members = grouping.members(kernels(names))
    assert sorted(int(place) for places in members.values() for place in places) == list(range(len(names)))
