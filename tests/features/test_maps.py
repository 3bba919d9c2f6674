"""Maps of features: what is near stays near, the same map every time, and bad features are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets, features, jobs
from fsviz.analyses import image_map
from fsviz.errors import BadInput
from fsviz.features import maps, store
from fsviz.methods import METHODS
from fsviz.records import PAD, Features, NeighbourAgreement, Tasks
from fsviz.records.image_map import MappedTask
from fsviz.studies import evaluate
from fsviz.studies import feature_map as study
from fsviz.tasks import draw
from tests.cli.calling import run_json
from tests.studies.toy_dataset import make_toy, save_toy_features


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


def three_islands(n: int = 40) -> Features:
    rng = np.random.default_rng(0)
    values = np.repeat(10 * np.eye(3, 8), n, axis=0) + rng.normal(size=(3 * n, 8))
    classes = np.repeat(np.arange(3), n)
    return Features("made", "net", values.astype(np.float32), np.arange(3 * n), classes)


def test_islands_stay_islands_and_the_map_is_the_same_every_time() -> None:
    stored = three_islands()
    xy = maps.lay_out(stored)
    assert np.array_equal(xy, maps.lay_out(stored)) and xy.shape == (120, 2)
    same, chance = maps.same_class_share(xy, stored.class_ids)
    assert same > 0.98 and chance == pytest.approx(39 / 119)


def test_neighbours_kept_by_hand() -> None:
    angles = np.linspace(0, 1.5, 30)
    values = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    line = np.column_stack([angles, np.zeros(30)])
    assert maps.neighbour_recall(values, line, k=2) == (1.0, 30)  # the same order on the line
    # two of the map's neighbours out of 29 others, at random: 2/29 are right on average
    rng = np.random.default_rng(0)
    chance = np.mean([maps.neighbour_recall(values, line[rng.permutation(30)], k=2)[0] for _ in range(200)])
    assert chance == pytest.approx(2 / 29, abs=0.02)


def test_few_images_equal_features_and_rows_that_are_not_numbers() -> None:
    stored = three_islands()
    with pytest.raises(BadInput, match="at least 10 images"):
        maps.lay_out(Features("made", "net", stored.values[:9], np.arange(9), np.zeros(9, int)))
    with pytest.raises(BadInput, match="are the same"):
        maps.lay_out(Features("made", "net", np.ones((20, 4), np.float32), np.arange(20), np.zeros(20, int)))
    values = stored.values.copy()
    values[[3, 50]] = np.nan
    output = maps.with_quality(
        spoiled := Features("made", "net", values, stored.image_ids, stored.class_ids), maps.FAST, maps.lay_out(spoiled)
    )
    assert output.left_out == 2 and len(output.xy) == 118 and not {3, 50} & set(output.image_ids.tolist())
    ten = Features("made", "net", stored.values[:10], np.arange(10), np.zeros(10, int))
    assert np.isfinite(maps.lay_out(ten)).all()
    with_copies = Features("made", "net", np.repeat(stored.values[:10], 4, axis=0), np.arange(40), np.zeros(40, int))
    assert np.isfinite(maps.lay_out(with_copies)).all()


def test_of_many_images_some_are_laid_out_and_the_others_lie_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "_LANDMARKS", 60)
    stored = three_islands()
    xy = maps.lay_out(stored)
    assert maps.same_class_share(xy, stored.class_ids)[0] > 0.9


def test_kept_neighbours_are_measured_on_all_images_not_on_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Landmarks lie better than the images between them, so measuring on landmarks alone would flatter the map."""
    monkeypatch.setattr(maps, "_LANDMARKS", 300)
    rng = np.random.default_rng(3)
    values = rng.normal(size=(1500, 12)).astype(np.float32)
    stored = Features("made", "net", values, np.arange(1500), np.zeros(1500, int))
    xy = maps.lay_out(stored)
    measured = maps.neighbour_recall(values, xy, max_rows=300)[0]
    on_all = maps.neighbour_recall(values, xy, max_rows=1500)[0]
    with monkeypatch.context() as patch:  # the measured rows are then the landmarks
        patch.setattr(maps, "_MEASURE_SEED", maps._LANDMARK_SEED)
        on_landmarks = maps.neighbour_recall(values, xy, max_rows=300)[0]
    assert on_landmarks > 1.25 * on_all
    assert measured == pytest.approx(on_all, rel=0.1)


def test_a_map_is_kept_beside_its_features_and_goes_with_them() -> None:
    dataset = make_toy(n_images=6)
    assert maps.find(dataset, "alpha_net") is None
    output = maps.make(dataset, "alpha_net")
    result = maps.find(dataset, "alpha_net")
    assert (
        result is not None
        and np.array_equal(result.xy, output.xy)
        and result.preserved == output.preserved > 3 * output.chance
    )
    assert maps.find(dataset, "alpha_net", maps.BETTER) is None
    for path in store.stored_paths("toy"):
        assert (path / "map.npz").is_file()
        (path / "map.npz").write_bytes(b"broken")
    assert maps.find(dataset, "alpha_net") is None
    save_toy_features(dataset, "alpha_net", seed=5)  # other features under the same name
    assert maps.find(dataset, "alpha_net") is None


@pytest.mark.parametrize("backbone", ["efficientnet_lite0", "demo_clip"])
def test_the_demo_ships_with_better_maps(backbone: str) -> None:
    demo = datasets.load("demo")
    result = maps.find(demo, backbone)
    assert result is not None and result.kind == maps.BETTER and len(result.xy) == 5136
    stored = features.load(demo, backbone)
    again = maps.neighbour_recall(np.asarray(stored.values, np.float32), result.xy)
    assert again[0] == pytest.approx(result.preserved, abs=1e-3) and result.preserved > 100 * result.chance


def test_the_better_map_is_a_run_that_can_be_stopped(tmp_path: Path) -> None:
    make_toy(n_images=4)
    spec = study.STUDY.prepare({"dataset": "toy", "backbone": "alpha_net"}, tmp_path)
    at_once = {**spec, "folder": str(tmp_path / "one")}
    last = study.STUDY.n_chunks(spec) - 1
    whole = study.STUDY.chunk(at_once, last)["xy"]
    in_parts = {**spec, "folder": str(tmp_path / "two")}
    for index in range(last + 1):
        study.STUDY.chunk(
            {**spec, "folder": str(tmp_path / "other")}, 0
        )  # another run in between: its layout is kept now
        part = study.STUDY.chunk(in_parts, index)["xy"]
    assert np.array_equal(part, whole)
    run = jobs.run_in_foreground({"study": "feature_map", "dataset": "toy", "backbone": "alpha_net"})
    assert run.state == "finished"
    result = maps.find(datasets.load("toy"), "alpha_net", maps.BETTER)
    assert result is not None and np.array_equal(result.xy, whole)
    assert jobs.results(run.id)["neighbours_kept"] == result.preserved
    with pytest.raises(BadInput, match="exists already"):
        study.STUDY.prepare({"dataset": "toy", "backbone": "alpha_net"}, tmp_path)


def test_the_command_makes_a_map_and_writes_it(tmp_path: Path, capsys) -> None:
    make_toy(n_images=4)
    out = tmp_path / "map.csv"
    captured = run_json(capsys, "map", "toy", "--backbone", "alpha_net", "--out", str(out))
    assert captured["kind"] == "fast" and captured["n_images"] == 64 and 0 < captured["neighbours_kept"] <= 1
    assert captured["chance"] == pytest.approx(10 / 63)
    assert len(out.read_text().splitlines()) == 65
    assert run_json(capsys, "map", "toy")["neighbours_kept"] == captured["neighbours_kept"]


def test_colours_by_what_the_dataset_knows() -> None:
    dataset = make_toy(n_images=4)
    ids = np.arange(64)[::-1]
    by_class = study.colouring(dataset, ids, "class", [15, 2])
    assert (
        by_class.codes[:4].tolist() == [0] * 4
        and (by_class.codes == 1).sum() == 4
        and (by_class.codes == PAD).sum() == 56
    )
    groups = study.colouring(dataset, ids, "superclass")
    assert len(groups.names) == 4 and np.bincount(groups.codes).tolist() == [16] * 4
    with pytest.raises(BadInput, match="no attribute"):
        study.colouring(dataset, ids, "attribute:blur")


def test_images_of_a_run_are_right_as_often_as_their_queries_were() -> None:
    make_toy(n_images=12)
    sampler = {"sampler": "uniform", "n_way": 4, "n_shot": 1, "n_query": 3, "n_tasks": 30}
    run = jobs.run_in_foreground(
        {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "methods": [{"name": "protonet"}],
         "sampler": sampler}
    )  # fmt: skip
    spec = jobs.spec(run.id)
    accuracy, times = study.accuracy_of_images(spec, jobs.chunks(run.id), 0, 192)
    assert times.sum() == 30 * 12
    assert np.isnan(accuracy[times == 0]).all()
    mean = (accuracy * times)[times > 0].sum() / times.sum()
    assert 100 * mean == pytest.approx(jobs.results(run.id)["results"][0]["accuracy"], abs=1e-6)


def test_a_task_on_the_map() -> None:
    dataset = make_toy(n_images=12)
    bed = draw.sample(dataset, name="mine", n_way=3, n_shot=2, n_query=4, n_tasks=5)
    draw.save(bed)
    task = study.task_at(dataset, "mine:3")
    assert np.array_equal(task.support[0], bed.tasks.support[3])
    stored = study.fast_map({"dataset": "toy", "backbone": "alpha_net"})
    mapped = image_map.map_task(dataset, stored, task)
    assert (mapped.is_support.sum(), (~mapped.is_support).sum()) == (6, 12)
    assert set(stored.image_ids[mapped.rows[mapped.is_support]]) == set(task.support.ravel())
    of_class = dataset.image_class_ids()[stored.image_ids[mapped.rows]]
    assert (task.class_ids[0][mapped.way] == of_class).all()
    predictions = evaluate.predict_tasks(dataset, "alpha_net", "protonet", METHODS["protonet"].checked(), task)
    row_of = {int(i): row for row, i in enumerate(stored.image_ids)}
    wrong = {row_of[int(i)] for i in task.query[0][predictions.rank[0] > 0]}
    assert set(mapped.rows[~mapped.is_correct]) == wrong and mapped.n_correct == 12 - len(wrong)
    for row, way, predicted in zip(mapped.rows, mapped.way, mapped.predicted, strict=True):
        if row in wrong:
            assert predicted in mapped.names and predicted != mapped.names[way]
    share = mapped.n_correct / 12
    assert image_map.task_sentence(mapped) == (
        f"ProtoNet classifies {mapped.n_correct} of 12 queries correctly ({share:.0%}; chance level 33%)."
    )
    with pytest.raises(BadInput, match="must be 0 to 4"):
        study.task_at(dataset, "mine:5")
    assert isinstance(task, Tasks) and len(task) == 1


def test_what_neighbours_share_by_hand() -> None:
    near = np.array([[1], [0], [3], [2]])
    assert maps.agreement(near, np.array([0, 0, 0, 1])) == (0.5, 0.5)  # 3 x 2 equal pairs of 4 x 3
    assert maps.agreement(near, np.array([0, 0, 1, PAD])) == (1.0, pytest.approx(1 / 3))
    assert np.isnan(maps.agreement(near, np.array([0, PAD, PAD, PAD]))).all()


def test_the_class_among_neighbours_of_a_group_by_hand() -> None:
    """A map that follows groups only shows classes inside a group as often as chance; one of classes more often."""
    groups = np.repeat([0, 1], 30)
    classes = np.tile([0, 1, 2], 20) + 3 * groups
    chance = 9 / 29  # 10 images of each of three classes in a group of 30
    rng = np.random.default_rng(0)
    within_group = np.array([rng.choice(np.flatnonzero(groups == g), 8) for g in groups])
    share, expected = maps.agreement_within(within_group, classes, groups)
    assert expected == pytest.approx(chance) and abs(share - 1 / 3) < 0.08
    within_class = np.array([rng.choice(np.flatnonzero(classes == c), 8) for c in classes])
    assert maps.agreement_within(within_class, classes, groups)[0] == 1
    other_group = np.array([rng.choice(np.flatnonzero(groups != g), 8) for g in groups])
    assert np.isnan(maps.agreement_within(other_group, classes, groups)).all()
    half = np.concatenate([within_class[:, :4], other_group[:, :4]], axis=1)  # other groups do not count
    assert maps.agreement_within(half, classes, groups)[0] == 1


def test_islands_of_one_context_are_told_as_such() -> None:
    dataset = datasets.load("demo")
    contexts = pd.factorize(dataset.image_contexts())[0]
    rng = np.random.default_rng(0)
    image_ids = np.arange(len(contexts))

    def feature_map(codes: np.ndarray) -> maps.FeatureMap:
        xy = np.column_stack([codes * 10.0, np.zeros(len(codes))]) + rng.normal(size=(len(codes), 2))
        return maps.FeatureMap("demo", "net", "", maps.FAST, xy, image_ids, 0.5, 0.1, 10)

    first, *rest = study.shared(dataset, feature_map(contexts))
    assert first.by == study.BY_CONTEXT and first.share > 0.99 and first.beyond > 0.99
    assert next(item for item in rest if item.by == study.BY_CLASS).beyond < 0.05
    assert "follow context more than class" in study.cluster_headline([first, *rest])
    group, of_class, second = (
        NeighbourAgreement("superclass", "group", 1.0, 0.2),
        NeighbourAgreement("class", "class", 0.8, 0.1, within=NeighbourAgreement("class", "class", 0.9, 0.5)),
        rest[-1],
    )
    headline = study.cluster_headline([group, of_class, second])
    assert headline == (
        "Clusters follow class: 80% of neighbours share the class (10% expected by chance); 90% of those in the same "
        "group share the class (50% by chance)."
    )
    loose = NeighbourAgreement("class", "class", 0.5, 0.1, within=NeighbourAgreement("class", "class", 0.52, 0.5))
    assert study.cluster_headline([group, loose, second]) == (
        "Clusters follow group: 100% of neighbours share the group (20% expected by chance); 52% of those in the same "
        "group share the class (50% by chance)."
    )
    by_class = study.shared(dataset, feature_map(dataset.image_class_ids()))
    assert "no attribute much more often" in study.cluster_headline(
        study.shared(dataset, feature_map(np.zeros(len(contexts))))
    )
    assert next(item for item in by_class if item.by == study.BY_CLASS).share > 0.99
    scale = pd.factorize(pd.qcut(dataset.images["scale"], 3))[0]
    assert study.shared(dataset, feature_map(scale))[0].title == "scale"


def test_a_class_of_a_task_is_named_once_above_its_middle_support_image() -> None:
    xy = np.array([[0, 0], [5, 0], [60, 0], [100, 0], [100, 90]], np.float32)
    task = MappedTask(
        ("a", "b"),
        np.arange(5),
        np.array([0, 0, 0, 1, 1]),
        np.array([True, True, True, True, False]),
        np.ones(5, bool),
        ("",) * 5,
        1,
        1,
    )
    labels = image_map.task_labels(xy, task)
    assert [(label.name, label.x) for label in labels] == [("a", 5.0), ("b", 100.0)]
    assert all(0 < label.y < 10 for label in labels)


def test_a_name_is_written_where_most_of_its_images_are_and_scattered_ones_have_none() -> None:
    rng = np.random.default_rng(0)
    near, far = rng.normal((10, 10), 0.5, (40, 2)), rng.normal((90, 80), 0.5, (20, 2))
    scattered = rng.uniform(0, 100, (60, 2))
    xy = np.concatenate([near, far, scattered])
    codes = np.array([0] * 60 + [1] * 60)
    (label,) = image_map.labels(xy, codes, ["together", "scattered"])
    assert label.name == "together" and label.share == pytest.approx(2 / 3)
    assert abs(label.x - 10) < 1 and abs(label.y - 10) < 1
    both = image_map.labels(xy, codes, ["together", "scattered"], together=0.0)
    assert {label.name for label in both} == {"together", "scattered"}
    twins, of_twin = np.concatenate([near, near, far[:1]]), np.array([0] * 40 + [1] * 40 + [PAD])
    assert len(image_map.labels(twins, of_twin, ["one", "two"])) == 1, "names do not overlap"
    assert image_map.labels(xy, np.full(120, PAD), ["together"]) == []


def test_the_default_colour_is_what_clusters_follow() -> None:
    demo = datasets.load("demo")
    feature_map = maps.find(demo, "efficientnet_lite0")
    agreements = study.shared(demo, feature_map)
    assert study.default_colour(demo, agreements) == agreements[0].by == "context"
    assert f"follow {agreements[0].title} more" in study.cluster_headline(agreements)
    weak = [NeighbourAgreement("context", "context", 0.11, 0.08)]
    assert study.default_colour(demo, weak) == study.default_colour(demo) == "superclass"
    by_class = [NeighbourAgreement("class", "class", 0.9, 0.1)]
    assert study.default_colour(demo, by_class) == "superclass", "there are more classes than colours"


def test_the_line_about_a_map_has_its_size_and_quality() -> None:
    xy = np.zeros((3, 2), np.float32)
    feature_map = maps.FeatureMap("toy", "net", "", maps.FAST, xy, np.arange(3), 0.42, 0.002, 3, left_out=7)
    assert study.quality(feature_map, 2) == (
        "3 images of 2 classes; the map preserves 42% of each image's 10 nearest neighbours (0.2% expected by chance). "
        "7 without finite features are excluded."
    )
