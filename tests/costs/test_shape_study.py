"""docs/studies/power/transfer.py, which makes the shape of estimated tables."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from eprof.costs.estimate import shape

pytest.importorskip("scipy")
STUDY = Path(__file__).parents[2] / "docs" / "studies" / "power" / "transfer.py"
DATA = Path(__file__).parents[3] / "shared" / "data" / "power"


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("transfer", STUDY)
    module = importlib.util.module_from_spec(spec)
    sys.modules["transfer"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["transfer"]


def made_up(study, gpu, scale, constant_w, prices):
    draw = np.random.default_rng(len(gpu.name))
    rates = draw.lognormal(0, 1, (25, len(prices)))
    rates[:, 0 if not gpu.has_full_rate_fp64 else 1] = 0
    names = np.array([f"k{number}" for number in range(25)], dtype=object)
    return study.Measured(gpu, names, rates, scale * rates @ prices + constant_w)


def test_a_shape_that_gpus_do_share_is_found_with_their_scales_and_constants(study):
    prices = np.array([5.0, 30.0, 2.0, 1.0, 8.0, 0.5, 1.5, 3.0, 6.0])
    scales, constants_w = [0.8, 1.25, 2.0, 0.5], [60.0, 90.0, 40.0, 45.0]
    parts = [
        made_up(study, gpu, scale, constant_w, prices)
        for gpu, scale, constant_w in zip(study.GPUS, scales, constants_w, strict=True)
    ]
    found, fitted = study.shape(parts)
    assert found == pytest.approx(prices, rel=0.1)
    assert fitted == [pytest.approx(pair, rel=0.1) for pair in zip(scales, constants_w, strict=True)]


def test_prices_that_are_spread_keep_their_mean(study):
    shapes = np.ones((40_000, 2))
    spread = study.spread_prices(shapes, 0.8, 0.0, np.random.default_rng(0))
    assert spread.mean(axis=0) == pytest.approx([1, 1], rel=0.03)


def test_a_model_that_is_right_splits_a_metered_run_exactly(study):
    power_w = np.random.default_rng(3).uniform(50, 250, 20)
    by_model, by_time = study.of_own_run(0.4 * power_w, power_w)
    assert by_model == pytest.approx(np.ones(len(by_model)))
    assert study.covering(by_time) > 1.05


@pytest.mark.skipif(not DATA.exists(), reason="the measurements are not here")
def test_the_shipped_shape_is_the_one_that_the_script_fits(study):
    prices, fitted = study.shape(study.read(DATA))
    shipped = [shape()["pj"][name] for name in study._named(prices)]
    assert shipped == pytest.approx(prices.tolist(), rel=5e-3)
    for memory in study.IDLE_W:
        share, _ = study.middle_share(study.read(DATA), fitted, memory)
        assert shape()["constant"][memory]["share"] == pytest.approx(share, abs=1e-3)
