"""A sweep is the swept study at every value, run like any other study."""

from __future__ import annotations

import numpy as np
import pytest

import fsviz
from fsviz import jobs, studies
from fsviz.cli import main
from fsviz.errors import BadInput, UnknownName, WorkspaceError
from fsviz.studies import causes, confusion, support_sets, sweep
from fsviz.workspace import plain_json
from tests.cli.calling import fails
from tests.studies.toy_dataset import make_toy

SMALL = {"dataset": "toy", "backbone": "alpha_net", "n_way": 3, "n_query": 4, "n_tasks": 12, "methods": ["protonet"]}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(tmp_path_factory.mktemp("sweep") / "ws"))
        yield make_toy()


def test_every_value_is_the_study_with_that_value(toy) -> None:
    spec = sweep.sweep(causes.STUDY, SMALL, "n_shot", [1, 4])
    result = jobs.compute({"study": "sweep", **spec})
    assert [value for value, _ in result.results] == [1, 4]
    for value, each in result.results:
        alone = jobs.compute({"study": "causes", **SMALL, "n_shot": value})
        assert (each.accuracy["ProtoNet"] == alone.accuracy["ProtoNet"]).all()
        assert plain_json(causes.summary(each)) == plain_json(causes.summary(alone))


def test_the_table_has_a_row_per_value_and_number(toy) -> None:
    base = {name: value for name, value in SMALL.items() if name != "methods"}
    spec = sweep.sweep(support_sets.STUDY, base, "n_shot", [1, 4])
    result = jobs.compute({"study": "sweep", **spec})
    table = result.table
    assert len(table) == 2 * 4 and list(table["value"].unique()) == [1, 4]
    first = support_sets.summary(result.results[0][1])
    hard = table[(table["value"] == 1) & (table["name"] == "accuracy_hard")].iloc[0]
    assert hard["number"] == first["accuracy"]["hard"] and hard["unit"] == "%" and hard["ci_unit"] == "tasks"
    assert hard["high"] - hard["number"] == pytest.approx(first["ci95"]["hard"])
    assert support_sets.summary(result.at("4"))["accuracy"] != first["accuracy"]
    with pytest.raises(UnknownName, match="value"):
        result.at("9")


def test_a_sweep_runs_is_found_resumed_and_shown(toy, capsys) -> None:
    spec = {"study": "sweep", **sweep.sweep(causes.STUDY, SMALL, "n_shot", [1, 2])}
    run = jobs.run_in_foreground(spec)
    assert run.state == "finished" and run.n_chunks == 2
    assert jobs.find(spec).id == run.id
    assert jobs.find({**spec, "values": [1, 4]}) is None
    before = jobs.results(run.id)
    assert before["points"] == plain_json(sweep.summary(jobs.compute(spec)))["points"]
    (jobs.folder(run.id) / "chunks" / "000001.npz").unlink()
    with pytest.raises(WorkspaceError, match="computes it again"):
        jobs.result(run.id)
    assert jobs.results(jobs.resume_here(run.id).id) == before
    assert main(["runs", "show", run.id]) == 0
    assert "Accuracy, ProtoNet (%)" in capsys.readouterr().out


def test_a_run_under_way_has_the_values_that_have_begun(toy) -> None:
    run = jobs.run_in_foreground({"study": "sweep", **sweep.sweep(causes.STUDY, SMALL, "n_shot", [1, 2])})
    partial = sweep.collect(jobs.spec(run.id), jobs.chunks(run.id, only=[1]))
    assert [value for value, _ in partial.results] == [2]


def test_the_parts_are_those_of_the_values_one_after_another(toy) -> None:
    spec = sweep.sweep(causes.STUDY, SMALL, "n_shot", [1, 2])
    run = jobs.run_in_foreground({"study": "sweep", **spec})
    at_work = jobs.spec(run.id)
    labels = [part.label for part in sweep.parts(at_work)]
    assert labels == ["Support images 1", "Support images 2"]
    assert sweep.work(spec).n == 12 and sweep.work(spec).items == "tasks per point"


def test_a_preview_shortens_the_study_and_keeps_the_values(toy) -> None:
    base = {name: value for name, value in SMALL.items() if name != "methods"}
    spec = sweep.sweep(support_sets.STUDY, {**base, "n_tasks": 400}, "n_shot", [1, 2])
    shorter = sweep.shorten(spec, 80)
    assert shorter is not None and shorter["values"] == [1, 2] and shorter["spec"]["n_tasks"] == 80
    assert sweep.check(shorter) == shorter


def test_values_are_text_numbers_or_those_that_the_study_declares(toy) -> None:
    base = {name: value for name, value in SMALL.items() if name != "methods"}
    assert sweep.sweep(support_sets.STUDY, base, "n_shot", ["1", 2, "2"])["values"] == [1, 2]
    assert sweep.sweep(support_sets.STUDY, base, "step")["values"] == list(support_sets.STEP_SIZES)
    assert sweep.sweep(support_sets.STUDY, base, "loss", ["Cosine", "plain"])["values"] == ["cosine", "plain"]


def test_any_study_with_headline_numbers_can_be_swept(toy) -> None:
    names = {"causes", "confusion", "context_shift", "prediction", "search_comparison", "stress_test", "support_sets"}
    assert set(sweep.swept_studies()) == names
    spec = sweep.sweep(confusion.STUDY, {"dataset": "toy", "backbone": "alpha_net"}, "k", [2, 4])
    numbers = jobs.compute({"study": "sweep", **spec}).numbers
    assert [number.name for _, number in numbers] == ["mean", "mean"]
    assert all(np.isfinite(number.value) and number.low < number.value < number.high for _, number in numbers)


def test_impossible_sweeps_are_named(toy) -> None:
    with pytest.raises(UnknownName, match="study that can be swept"):
        sweep.check({"spec": {"study": "extraction"}, "vary": "n_shot"})
    with pytest.raises(UnknownName, match="Did you mean 'n_shot'"):
        sweep.sweep(causes.STUDY, SMALL, "nshot", [1])
    with pytest.raises(BadInput, match=r"n_shot has no default values\. Set --values 1,2,5"):
        sweep.sweep(causes.STUDY, SMALL, "n_shot")
    with pytest.raises(BadInput, match="n_shot must be a whole number"):
        sweep.sweep(causes.STUDY, SMALL, "n_shot", [1.5])
    with pytest.raises(UnknownName, match="setting of a sweep"):
        sweep.check({"dataset": "toy", "n_shot": 3})
    with pytest.raises(BadInput, match='A sweep needs "spec"'):
        sweep.check({"dataset": "toy"})


def test_command_and_function(toy, capsys) -> None:
    words = "sweep causes toy --vary n_shot --values 1,2 --n-way 3 --n-query 4 --n-tasks 12 --methods protonet"
    assert main(words.split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Support images") and "Accuracy, ProtoNet (%)" in lines[0]
    assert [line.split()[0] for line in lines[2:4]] == ["1", "2"]
    settings = {name: value for name, value in SMALL.items() if name != "dataset"}
    result = fsviz.sweep("causes", "toy", "n_shot", [1, 2], **settings)
    mean = 100 * result.results[0][1].accuracy["ProtoNet"].mean()
    assert result.table["number"].iloc[0] == pytest.approx(mean)
    assert "Did you mean 'n_shot'" in fails(capsys, *words.replace("n_shot", "nshot").split())


def test_every_swept_study_declares_settings_that_can_vary() -> None:
    for study in sweep.swept_studies().values():
        assert sweep.swept_settings(study), study.name
        assert study is studies.get(study.name)
