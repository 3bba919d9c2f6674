"""The public functions: the examples of the notebook guide run, importing is light, other loops get the same tasks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fsviz
from fsviz import jobs
from fsviz.errors import BadInput
from fsviz.features import torchvision_guard
from fsviz.studies import evaluate as study
from fsviz.user import code as user_code
from tests.studies.toy_dataset import make_toy

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "how-to" / "notebook.md").read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    monkeypatch.setattr(user_code, "_allowed", False)
    return tmp_path


def test_the_examples_of_the_page_run(home: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(blocks) >= 5
    names: dict = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "docs/how-to/notebook.md", "exec"), names)
    results, sets, numbers = names["results"], names["sets"], names["numbers"]
    assert results.table["name"].tolist() == ["ProtoNet", "SimpleShot", "nearest", "nearest (power 1)"]
    rows = results.table.set_index("name")
    assert rows.loc["ProtoNet", "accuracy"] == rows.loc["nearest", "accuracy"]  # the same rule, the same answers
    assert sets.accuracy("hard").mean() < sets.accuracy("random").mean()
    assert list(numbers) == ["coarsity", "support_separation"] and len(numbers) == 40
    assert names["figure"].data and names["support"].shape[0] == 25
    assert [run.id for run in jobs.list_runs("evaluate")] == [results.run]
    assert "<table" in results._repr_html_()


def test_every_verb_is_on_the_page_and_says_what_it_does() -> None:
    for name in fsviz.VERBS:
        assert getattr(fsviz, name).__doc__, name
        assert name == "Evaluation" or f"fsviz.{name}(" in PAGE or f"fsviz.{name}`" in PAGE, name
    assert set(fsviz.VERBS) <= set(dir(fsviz))
    with pytest.raises(AttributeError):
        fsviz.nothing_like_it  # noqa: B018


def test_importing_fsviz_imports_nothing_heavy() -> None:
    code = "import sys, fsviz; print([m for m in ('torch', 'pandas', 'numpy', 'streamlit') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip() == "[]"


def test_a_recorded_evaluation_is_opened_again_and_failures_are_told(home: Path) -> None:
    make_toy()

    def broken(support, support_mask, query, query_mask):
        raise ValueError("<b>no</b>")

    result = fsviz.evaluate(
        "toy", ["protonet", broken], backbone="alpha_net", sampler="uniform", n_way=4, n_shot=2, n_query=3, n_tasks=20
    )
    assert [row["label"] for row in result.failed] == ["broken"]
    assert "&lt;b&gt;no" in result._repr_html_() and "<b>no" not in result._repr_html_()
    again = fsviz.api.evaluation(result.run)
    assert again.table.equals(result.table) and again.failed == result.failed
    with pytest.raises(BadInput, match="brings its own tasks"):
        fsviz.evaluate("toy", "protonet", tasks="x", n_way=3)
    with pytest.raises(BadInput, match="There are figures of"):
        fsviz.plot(3)


# --- a loop elsewhere --------------------------------------------------------------------------------------------


def test_a_testbed_in_easyfsls_own_loop_gives_the_accuracy_of_a_run(home: Path) -> None:
    pytest.importorskip("easyfsl")
    torchvision_guard.install()
    import torch
    from easyfsl.methods import PrototypicalNetworks
    from easyfsl.utils import evaluate as theirs
    from torch.utils.data import DataLoader, Dataset

    from fsviz import features

    make_toy()
    toy = fsviz.load("toy")
    testbed = fsviz.sample(toy, sampler="uniform", n_way=4, n_shot=2, n_query=3, n_tasks=25)
    table = features.load(toy, "alpha_net")

    class Rows(Dataset):  # features in the place of pixels: the toy has none
        def __getitem__(self, image_id):
            row = int(table.rows_of(np.array([image_id]))[0])
            return torch.from_numpy(np.asarray(table.values[row], np.float32)), int(table.class_ids[row])

    batches = fsviz.torch_tasks(testbed)
    loader = DataLoader(Rows(), batch_sampler=batches, collate_fn=batches.episodic_collate_fn)
    accuracy = theirs(PrototypicalNetworks(torch.nn.Identity()), loader, device="cpu", use_tqdm=False)
    run = fsviz.evaluate(toy, "protonet", testbed, "alpha_net")
    assert 100 * accuracy == pytest.approx(run.table["accuracy"].iloc[0])


def test_a_batch_is_a_task_as_easyfsls_collate_function_wants_it(home: Path) -> None:
    pytest.importorskip("easyfsl")
    torchvision_guard.install()
    from easyfsl.samplers import TaskSampler

    images = fsviz.torch_images("digits")
    testbed = fsviz.sample("digits", sampler="uniform", n_way=3, n_shot=2, n_query=2, n_tasks=2, split="all")
    batches = fsviz.torch_tasks(testbed)
    assert len(batches) == 2
    (batch, _), task = list(batches), testbed.tasks.take(slice(0, 1))
    items = [images[i] for i in batch]
    ours = batches.episodic_collate_fn(items)
    sampler = TaskSampler.__new__(TaskSampler)  # whose own __init__ fails with this version of torch
    sampler.n_way, sampler.n_shot, sampler.n_query = 3, 2, 2
    theirs = sampler.episodic_collate_fn(items)
    assert (ours[0] == theirs[0]).all() and (ours[2] == theirs[2]).all()
    for mine, second in ((ours[1], theirs[1]), (ours[3], theirs[3])):
        assert [ours[4][i] for i in mine] == [theirs[4][i] for i in second]
    assert ours[4] == task.class_ids[0].tolist() and ours[1].tolist() == [0, 0, 1, 1, 2, 2]
    assert batch[:2] == task.support[0, 0].tolist() and batch[2:4] == task.query[0, 0].tolist()
    assert ours[0].shape[1:] == images[0][0].shape and 0 <= float(ours[0].min()) <= float(ours[0].max()) <= 1


def test_live_tasks_follow_from_the_seed_and_the_pass(home: Path) -> None:
    settings = {"sampler": "uniform", "n_way": 3, "n_shot": 1, "n_query": 2, "n_tasks": 4, "split": "all"}
    first, second = (fsviz.torch_tasks("digits", seed=7, **settings) for _ in range(2))
    passes = [list(first), list(first)]
    assert passes == [list(second), list(second)] and passes[0] != passes[1]
    assert np.array_equal(first.tasks_of(0).support, fsviz.sample("digits", seed=7, **settings).tasks.support)
    with pytest.raises(BadInput, match="A loop needs images"):
        fsviz.torch_tasks("digits", **{**settings, "n_shot": 0})


def test_tasks_that_differ_in_shots_are_refused_in_a_loop(home: Path) -> None:
    uneven = fsviz.sample("demo", sampler="variable", split="test", n_tasks=3)
    with pytest.raises(BadInput, match="as many support and query images"):
        fsviz.torch_tasks(uneven)


def test_measures_equal_those_that_tasks_carry(home: Path) -> None:
    testbed = fsviz.sample("demo", sampler="uniform", split="test", n_shot=2, n_query=3, n_tasks=5)
    result = fsviz.measure(testbed, ["coarsity", "query_loss"])
    assert np.allclose(result["coarsity"], testbed.tasks.measures["coarsity"])
    predictions = study.predict_tasks(fsviz.load("demo"), "efficientnet_lite0", "protonet", {}, testbed.tasks)
    assert np.allclose(result["query_loss"], predictions.loss(), rtol=1e-5)
