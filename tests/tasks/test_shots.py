"""The default number of support images: 1 where ProtoNet classifies almost everything with 5, else 5."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import api, datasets, features
from fsviz.analyses import compare_datasets
from fsviz.cli import main
from fsviz.records import Dataset, Features
from fsviz.settings import N_QUERY, N_SHOT, TOO_EASY, Settings
from fsviz.studies import causes, context_shift, evaluate, prediction, support_sets
from fsviz.tasks import draw, fitting, shots
from tests.studies.small_dataset import make_small


def fit(dataset: Dataset, **requested: object) -> fitting.Fit:
    return fitting.fit(dataset, requested, draw.IMAGE_DEFAULTS)


def nearest_mean_accuracy(dataset: Dataset, n_shot: int) -> float:
    """Accuracy of the nearest class mean on 300 other 5-way tasks, one by one in float64."""
    table = features.load(dataset, draw.default_backbone(dataset))
    values = np.asarray(table.values, np.float64)
    rng, class_ids = np.random.default_rng(1), dataset.split_class_ids(draw.default_split(dataset))
    n_correct = 0
    for _ in range(300):
        ways = rng.choice(class_ids, 5, replace=False)
        rows = [rng.permutation(np.flatnonzero(table.class_ids == way)) for way in ways]
        means = np.stack([values[row[:n_shot]].mean(0) for row in rows])
        queries = np.concatenate([values[row[n_shot : n_shot + 10]] for row in rows])
        predicted = ((queries[:, None] - means) ** 2).sum(2).argmin(1)
        n_correct += (predicted == np.repeat(np.arange(5), 10)).sum()
    return n_correct / (300 * 50)


@pytest.mark.parametrize(("name", "n_shot"), [("demo", 5), ("fruit", 1)])
def test_quick_protonet_lands_between_50_and_85_percent(name: str, n_shot: int) -> None:
    dataset = datasets.load(name)
    assert fit(dataset).values["n_shot"] == n_shot
    assert 0.5 <= nearest_mean_accuracy(dataset, n_shot) <= TOO_EASY + 0.01  # its interval
    if n_shot == 1:
        assert nearest_mean_accuracy(dataset, 5) > TOO_EASY


def test_every_page_and_command_has_the_same_default() -> None:
    fruit, backbone = datasets.load("fruit"), "efficientnet_lite0"
    spec = {"dataset": "fruit", "backbone": backbone}
    defaults = [
        evaluate.fit(fruit, [backbone], {}).values,
        evaluate.feasible_sampler(fruit, backbone),
        causes.fit(fruit, backbone, {}).values,
        prediction.fit(fruit, backbone, {}).values,
        support_sets.fit(fruit, backbone, {}).values,
        compare_datasets.fit(compare_datasets.dataset_splits(["fruit", "demo"]), {}).values,
        *(study.STUDY.check(spec) for study in (causes, prediction, support_sets)),
    ]
    assert [values["n_shot"] for values in defaults] == [1] * len(defaults)
    assert api.sample("fruit", n_tasks=2).tasks.setting == "5-way 1-shot"


def test_values_that_are_requested_win() -> None:
    fruit = datasets.load("fruit")
    assert fit(fruit, n_shot=5).values["n_shot"] == 5 and fit(fruit, n_shot=5).shots == ""
    assert evaluate.feasible_sampler(fruit, "efficientnet_lite0", n_shot=5)["n_shot"] == 5
    assert causes.STUDY.check({"dataset": "fruit", "backbone": "efficientnet_lite0", "n_shot": 3})["n_shot"] == 3
    assert api.sample("fruit", n_tasks=2, n_shot=5).tasks.setting == "5-way 5-shot"


def test_the_reason_is_in_the_help_of_the_control_and_in_a_line_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    fitted = fit(datasets.load("fruit"))
    control = fitting.with_defaults({s.name: s for s in (N_SHOT, N_QUERY)}, fitted)["n_shot"]
    percent = f"{shots.default_shots(datasets.load('fruit'), lambda split, backbone: {}).accuracy:.0%}"
    reason = f"With 5, ProtoNet classifies {percent} of the queries of {datasets.load('fruit').title} correctly."
    assert control.default == 1 and control.help == f"{N_SHOT.help} {reason}" and fitted.describe() == ""
    demo = fitting.with_defaults({"n_shot": N_SHOT}, fit(datasets.load("demo")))["n_shot"]
    assert demo == N_SHOT
    assert main(["sample", "fruit", "--n-tasks", "2", "--out", str(tmp_path / "tasks.json")]) == 0
    assert f"n_shot is 1 by default. {reason}" in "".join(capsys.readouterr())


@pytest.fixture
def probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A dataset whose probe gives these accuracies by shots, and the shots that were probed."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    calls: list[int] = []

    def make(name: str, n_images: int, **accuracies: float) -> tuple[Dataset, list[int]]:
        def probe(dataset: Dataset, table: Features, class_ids: np.ndarray, shape: Settings) -> tuple[float, float]:
            calls.append(shape["n_shot"])
            return accuracies[f"of_{shape['n_shot']}"], 0.01

        monkeypatch.setattr(shots, "_probe", probe)
        make_small(name, [n_images] * 6, tmp_path / name)
        return datasets.load(name), calls

    return make


def test_one_shot_stays_above_half(probed) -> None:
    dataset, calls = probed("steep", 40, of_5=0.87, of_1=0.49)
    assert fit(dataset).values["n_shot"] == 5 and calls == [5, 1]
    assert fit(dataset).values["n_shot"] == 5 and calls == [5, 1]  # probed once
    dataset, _ = probed("easy", 40, of_5=0.87, of_1=0.5)
    assert fit(dataset).values == {"n_way": 5, "n_shot": 1, "n_query": 10}
    dataset, _ = probed("fine", 40, of_5=0.859, of_1=0.8)
    assert fit(dataset).values["n_shot"] == 5


def test_small_classes_are_probed_with_the_shots_that_they_have(probed) -> None:
    dataset, calls = probed("tight", 8, of_3=0.9, of_1=0.8)
    fitted = fit(dataset)
    assert calls == [3, 1] and fitted.values == {"n_way": 5, "n_shot": 1, "n_query": 7}
    assert fitted.lowered == {"n_query": 10} and fitted.shots.startswith("With 3, ProtoNet classifies 90%")


def test_new_features_are_probed_again(probed) -> None:
    dataset, calls = probed("again", 40, of_5=0.9, of_1=0.8)
    fit(dataset)
    fit(replace(dataset, splits={"test": np.arange(5)}))
    assert calls == [5, 1, 5, 1]


def test_commands_name_the_shots_even_if_they_are_the_declared_default() -> None:
    values = context_shift.SETTINGS.check({"dataset": "demo"}, split="test", backbone="net")
    assert values["n_shot"] == 5 and "--n-shot 5" in context_shift.command(values)
    comparison = {"sides": ["demo", "fruit"], "n_way": 5, "n_shot": 5, "n_query": 10}
    assert "--n-shot 5" in compare_datasets.command(comparison)


def test_without_features_the_usual_shots_stay() -> None:
    assert not datasets.load("digits").has_features and fit(datasets.load("digits")).values["n_shot"] == 5
