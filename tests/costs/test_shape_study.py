"""docs/studies/power/transfer.py, which makes the shape of estimated tables."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from eprof.costs.estimate import chips, shape

pytest.importorskip("scipy")
STUDIES = Path(__file__).parents[2] / "docs" / "studies" / "power"
DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(STUDIES))
    yield importlib.import_module("transfer")
    sys.path.remove(str(STUDIES))


def made_up(study, gpu, scale, truth):
    """Runs of a GPU that the shape `truth` describes, but for its own scale."""
    draw = np.random.default_rng(len(gpu.name))
    rates = draw.lognormal(-5, 1, (25, len(study.TERMS))) * 8
    rates[:, study.TENSOR] = 0
    names = np.array([f"k{number}" for number in range(25)], dtype=object)
    constant_w = truth.constant_w(gpu)
    return study.Measured(gpu, names, rates, scale * rates @ truth.prices_pj(gpu, constant_w) + constant_w)


def test_a_shape_that_gpus_do_share_is_found_with_its_factors_by_process(study):
    prices = np.log(np.array(list(study.PRIOR_PJ.values())) * np.linspace(0.7, 1.4, len(study.TERMS)))
    truth = study.Shape(prices, np.log([1.0, 0.8, 0.5, 0.3]), np.log([0.25, 0.15, 0.2]))
    gpus = [*study.NVDVFS, study.RTX_5000, study.A100, study.RTX_3090, study.RTX_4090, study.H200]
    gpus = [study.Gpu(gpu.name, gpu.chip, gpu.year, gpu.process, gpu.board, gpu.limit_w) for gpu in gpus]
    found = study.fit([made_up(study, gpu, 1.0, truth) for gpu in gpus])
    priced = np.arange(len(study.TERMS)) != study.TENSOR
    assert found.prices[priced] == pytest.approx(truth.prices[priced], abs=0.15)
    assert found.processes == pytest.approx(truth.processes, abs=0.1)
    assert found.shares == pytest.approx(truth.shares, abs=0.15)


def test_factors_spread_as_they_are_told_and_leave_the_middle_where_it_is(study):
    factors = np.log(study.Spread(price=0.3, tensor=0.6, scale=0.0).factors(400, seed=1))
    assert np.median(factors, axis=0) == pytest.approx(np.zeros(len(study.TERMS)), abs=0.01)
    assert factors.std(axis=0) == pytest.approx(
        np.where(np.arange(len(study.TERMS)) == study.TENSOR, 0.6, 0.3), rel=0.02
    )
    common = np.log(study.Spread(0.0, 0.0, 0.2).factors(400, seed=1))
    assert (common == common[:, :1]).all() and common[:, 0].std() == pytest.approx(0.2, rel=0.02)


def test_a_model_that_is_right_splits_a_metered_run_exactly(study):
    power_w = np.random.default_rng(3).uniform(50, 250, 20)
    by_model, by_time = study.of_own_run(0.4 * power_w, power_w)
    assert by_model == pytest.approx(np.ones(len(by_model)))
    assert study.covering(by_time) > 1.05


def test_every_process_of_a_chip_has_a_factor_and_newer_ones_cost_less():
    factors = shape()["process"]
    assert {chip.process for chip in chips().values()} == set(factors)
    assert list(factors.values()) == sorted(factors.values(), reverse=True)


@pytest.mark.skipif(not DATA.exists(), reason="the measurements are not here")
def test_the_shipped_shape_is_the_one_that_the_script_fits(study):
    found = study.fit(study.read(DATA))
    shipped = {**shape()["pj"], "tensor_fp16_flop": shape()["tensor"]["share"]}
    assert [shipped[term] for term in study.TERMS] == pytest.approx(np.exp(found.prices).tolist(), rel=2e-2)
    assert list(shape()["process"].values()) == pytest.approx(np.exp(found.processes).tolist(), abs=1e-2)
    for kind, share in zip(study.BOARDS, np.exp(found.shares), strict=True):
        assert shape()["constant"][kind]["share"] == pytest.approx(share, abs=2e-3)


def test_a_gpu_that_is_left_out_is_in_nothing_that_predicts_it(study, monkeypatch):
    seen = []

    def recorded(parts, idle_alone=study.IDLE_ALONE):
        seen.append({gpu.chip for gpu in (*(part.gpu for part in parts), *idle_alone)})
        return study.Shape(np.zeros(len(study.TERMS)), np.zeros(4), np.zeros(3), {"": 0.0})

    monkeypatch.setattr(study, "fit", recorded)
    gpus = (study.A100, study.A100_80, study.RTX_3090)
    runs = [
        study.Measured(gpu, np.array(["k"], dtype=object), np.ones((1, len(study.TERMS))), np.ones(1)) for gpu in gpus
    ]
    for out, chips_seen in zip(study.left_out(runs), seen, strict=False):
        assert out.measured.gpu.chip not in chips_seen
        assert chips_seen
