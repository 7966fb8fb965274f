import json

import pyarrow.parquet as pq
import pytest

from scripts.scale.sweep import VERSION, Sweep, cost_point, run_sweep

SWEEP = Sweep("train", ("trn2-ultraserver", "dgx-h100"), ("llama-3.1-8b",), chips=(64, 128), batches=(256,))


def test_points_are_the_product_of_the_axes():
    points = SWEEP.points()
    assert [p["point"] for p in points] == [0, 1, 2, 3]
    assert {(p["system"], p["chips"]) for p in points} == {(s, c) for s in SWEEP.systems for c in (64, 128)}
    json.dumps(points)


def test_a_point_that_is_impossible_says_why():
    point = Sweep("train", ("rainier",), ("llama-3.1-8b",), batches=(7,)).points()[0]
    assert "--batch" in cost_point(point)["problem"]
    point = Sweep("train", ("trn1.2xlarge",), ("trillion",), batches=(8,)).points()[0]
    assert cost_point(point)["problem"] == "does not fit"


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_an_interrupted_sweep_continues(tmp_path, form):
    folder = tmp_path / "s"
    path, count, before = run_sweep(SWEEP, folder, form=form, most=1)
    assert (count, before) == (1, 0)
    first = next(folder.glob("part-*")).read_bytes()
    seen = []
    path, count, before = run_sweep(SWEEP, folder, form=form, update=seen.append)
    assert (count, before) == (4, 1)
    assert seen[-1] == 4
    assert (folder / f"part-000000.{form}").read_bytes() == first or len(list(folder.glob("part-*"))) == 4
    assert path == folder / f"results.{form}"
    if form == "parquet":
        rows = pq.read_table(path).to_pylist()
        assert [r["point"] for r in rows] == [0, 1, 2, 3]
        wanted = [cost_point(p) for p in SWEEP.points()]
        assert [r["seconds"] for r in rows] == [w["seconds"] for w in wanted]


def test_folders_of_others_are_left_as_they_are(tmp_path):
    folder = tmp_path / "s"
    run_sweep(SWEEP, folder, most=0)
    manifest = folder / "sweep.json"
    table = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(table | {"version": VERSION + 1}))
    before = sorted((p.name, p.read_bytes()) for p in folder.iterdir())
    with pytest.raises(ValueError, match=f"must be a sweep of version {VERSION}, not {VERSION + 1}"):
        run_sweep(SWEEP, folder)
    assert sorted((p.name, p.read_bytes()) for p in folder.iterdir()) == before
    manifest.write_text(json.dumps(table))
    with pytest.raises(ValueError, match="holds another"):
        run_sweep(Sweep("decode", SWEEP.systems, SWEEP.models), folder)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="must be new, empty or a sweep"):
        run_sweep(SWEEP, tmp_path / "t")


def test_unknown_names_are_refused_before_anything_is_made(tmp_path):
    with pytest.raises(ValueError, match="nearest: llama"):
        run_sweep(Sweep("train", SWEEP.systems, ("lama-3.1-8b",)), tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same(tmp_path):
    from distributed import LocalCluster
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        path, count, _ = run_sweep(SWEEP, tmp_path / "d", dask=cluster.scheduler_address)
    local, _, _ = run_sweep(SWEEP, tmp_path / "l")
    assert count == 4
    assert pq.read_table(path).equals(pq.read_table(local))


def test_nobody_at_the_address_is_one_line(tmp_path):
    with pytest.raises(ValueError, match="--dask must be the address of a scheduler that answers"):
        run_sweep(SWEEP, tmp_path / "s", dask="nonsense://nowhere")
