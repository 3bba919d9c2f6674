"""Methods of the user: the table of a built-in twin; what is broken says so in a sentence, and the others go on."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.cli import main
from fsviz.errors import BadInput, BrokenCode, NotAllowed
from fsviz.methods import protonet
from fsviz.studies import evaluate
from fsviz.tasks import snapshot, task_ids
from fsviz.user import code as user_code
from fsviz.user import methods as user_methods
from tests.cli.calling import fails, run_json
from tests.studies.test_evaluate import spec_of
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import APP, open_link

FINE = inspect.getsource(protonet)
NUMBERS = ("accuracy", "ci95", "ci95_images", "ci95_classes", "top5", "quartiles", "n_tasks")
TASKS = ["--sampler", "uniform", "--n-way", "4", "--n-shot", "2", "--n-query", "3", "--n-tasks", "30"]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    monkeypatch.setattr(user_code, "_allowed", True)
    monkeypatch.chdir(tmp_path)
    return make_toy()


def write(name: str, body: str) -> str:
    Path(name).write_text(body)
    return f"./{name}"


def predict_with(body: str) -> str:
    return f"import torch\ndef predict(support, support_mask, query, query_mask):\n    {body}\n"


ZEROS = "return torch.zeros(*support_mask.shape[:2], query.shape[1])"


# --- twins -------------------------------------------------------------------------------------------------------


def test_a_file_and_an_easyfsl_class_give_the_table_of_the_built_in_twin(toy, capsys) -> None:
    pytest.importorskip("easyfsl")
    mine = write("mine.py", FINE)
    methods = f"protonet,{mine},easyfsl.methods:PrototypicalNetworks"
    answer = run_json(capsys, "evaluate", "toy", "--backbone", "alpha_net", "--methods", methods, *TASKS)
    built_in, file, classifier = answer["results"]
    assert [row["label"] for row in answer["results"]] == ["ProtoNet", "mine.py", "PrototypicalNetworks"]
    for twin in (file, classifier):
        assert {n: twin[n] for n in NUMBERS} == {n: built_in[n] for n in NUMBERS}
    assert file["loss"] == built_in["loss"]
    assert answer["failed"] == []
    run = next(run for run in jobs.list_runs("evaluate"))
    tasks = snapshot.tasks(jobs.folder(run.id), snapshot.testbed_file(0))
    name = task_ids.name_testbed(toy, tasks, run.spec["recipe"], ["alpha_net"], run=(run.id, 0))
    Path("mine.py").unlink()  # a passport reads what was answered, and runs no code
    captured = {row["method"]: row["accuracy"] for row in run_json(capsys, "passport", f"{name}:7")["methods"]}
    assert captured["mine.py"] == captured["PrototypicalNetworks"] == captured["ProtoNet"]


def test_an_easyfsl_class_that_learns_gives_the_predictions_of_its_twin(toy) -> None:
    pytest.importorskip("easyfsl")
    user_methods.torchvision_guard.install()
    from easyfsl.methods import Finetune

    request = [{"name": "finetune", "preset": "easyfsl"}, {"name": user_code.keep(Finetune)}]
    run = jobs.run_in_foreground(spec_of(request, n_tasks=12))
    spec, chunks = jobs.spec(run.id), jobs.chunks(run.id)
    built_in, own = (evaluate.predictions(spec, chunks, which).predicted for which in (0, 1))
    assert (built_in == own).mean() > 0.99


def test_an_object_with_its_own_settings_works_unchanged(toy) -> None:
    pytest.importorskip("easyfsl")
    user_methods.torchvision_guard.install()
    from easyfsl.methods import SimpleShot

    run = jobs.run_in_foreground(
        spec_of([{"name": user_code.keep(SimpleShot(use_softmax=True))}, "simpleshot"], n_tasks=10)
    )
    assert [row["label"] for row in run.summary["results"]] == ["SimpleShot (yours)", "SimpleShot"]
    assert run.summary["results"][0]["parameters"] == {"unit_length": False}


def test_tasks_of_different_shapes_reach_a_class_without_padding(toy) -> None:
    calls = []

    class Recorder:
        @staticmethod
        def is_transductive():
            return True

        def to(self, *where):
            return self

        def eval(self):
            return self

        def process_support_set(self, images, labels):
            self.labels = labels
            calls.append(labels.tolist())

        def forward(self, query):
            import torch

            return torch.zeros(len(query), int(self.labels.max()) + 1)

        __call__ = forward

    method = user_methods.load_method(user_code.locate(user_code.keep(Recorder)))
    assert method.kind == "transductive"
    import torch

    support_mask = torch.tensor([[[True, True], [True, False], [False, False]]])
    query_mask = torch.tensor([[True, True, False]])
    scores = method.load()(torch.zeros(1, 3, 2, 4), support_mask, torch.zeros(1, 3, 4), query_mask)
    assert calls == [[0, 0, 1]] and scores.shape == (1, 3, 3) and torch.isinf(scores[0, 2]).all()


def test_parameters_come_from_the_signature_and_stand_in_the_label(toy, capsys) -> None:
    body = predict_with("return -scale * torch.cdist(support.mean(2), query)")
    mine = write("mine.py", body.replace("query_mask)", "query_mask, scale=1.0, plain=True)"))
    words = ["evaluate", "toy", "--backbone", "alpha_net", "--methods", mine, "--set", "mine.py.scale=2.5", *TASKS]
    answer = run_json(capsys, *words)
    assert answer["results"][0]["label"] == "mine.py (scale 2.5)"
    command = run_comparison.command(jobs.spec(answer["run"]))
    assert str(Path("mine.py").absolute()) in command and "mine.py.scale=2.5" in command
    assert "parameter of mine.py" in fails(capsys, *words[:6], "--set", "mine.py.size=2", *TASKS)


def test_a_file_may_declare_itself_as_built_in_methods_do(toy) -> None:
    method = user_methods.load_method(user_code.locate(write("mine.py", FINE)))
    assert [s.name for s in method.settings] == ["distance", "scale", "unit_length"]
    assert method.name == method.title == "mine.py" and method.shift_free == protonet.METHOD.shift_free


def test_a_package_offers_methods_by_an_entry_point(toy, tmp_path: Path, monkeypatch, capsys) -> None:
    package = tmp_path / "site"
    (package / "theirs-1.0.dist-info").mkdir(parents=True)
    (package / "theirs.py").write_text(FINE)
    (package / "theirs-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (package / "theirs-1.0.dist-info" / "entry_points.txt").write_text(
        "[fsviz.methods]\nnearest = theirs:predict\nprotonet = theirs:predict\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(package)])
    assert user_methods.packaged() == ["nearest"]  # built-in names stay built in
    answer = run_json(capsys, "evaluate", "toy", "--backbone", "alpha_net", "--methods", "protonet,nearest", *TASKS)
    assert answer["results"][1]["label"] == "nearest"
    assert answer["results"][0]["accuracy"] == answer["results"][1]["accuracy"]


# --- broken ------------------------------------------------------------------------------------------------------


def test_what_is_broken_says_so_in_a_sentence_and_the_others_go_on(toy, capsys) -> None:
    broken = {
        "syntax.py": ("def predict(support:", "syntax.py cannot be loaded: '(' was never closed in line 1."),
        "imports.py": ("import nothing_like_it", "imports.py cannot be loaded: ModuleNotFoundError"),
        "leaves.py": ("raise SystemExit(3)", "leaves.py cannot be loaded: SystemExit: 3"),
        "empty.py": ("x = 1", "empty.py must have a function predict(support, support_mask, query, query_mask"),
        "few.py": ("def predict(support, query): pass", "few.py must take (support, support_mask, query, query_mask"),
        "shape.py": (
            predict_with("return query[..., :3]"),
            "shape.py must return shape (tasks, ways, ",
        ),
        "nan.py": (predict_with(f"{ZEROS} * torch.nan"), "nan.py returned NaN or infinity on task 0"),
        "needs.py": ("def predict(a, b, c, d, e): pass", "needs.py takes 'e', which has no default"),
    }
    files = [write(name, body) for name, (body, _) in broken.items()]
    words = ["evaluate", "toy", "--backbone", "alpha_net", "--methods", ",".join(["protonet", *files]), *TASKS]
    answer = run_json(capsys, *words)
    alone = run_json(capsys, *words[:5], "protonet", *TASKS)
    numbers = [{n: result["results"][0][n] for n in NUMBERS} for result in (answer, alone)]
    assert numbers[0] == numbers[1] and len(answer["results"]) == 1
    values = {row["label"]: row["error"] for row in answer["failed"]}
    assert set(values) == set(broken)
    for name, (_, sentence) in broken.items():
        assert sentence in values[name] and "\n" not in values[name], values[name]
    assert main(words) == 0
    assert "No results of shape.py: shape.py must return" in capsys.readouterr().out


def test_an_exception_in_task_17_names_the_task(toy, capsys) -> None:
    few = {"n_shot": 2, "n_query": 3}
    run = jobs.run_in_foreground(spec_of(("protonet",), n_tasks=30, sampler=few))
    from fsviz import features

    tasks = snapshot.tasks(jobs.folder(run.id))
    table = features.load(toy, "alpha_net")
    first = float(np.float32(table.values[table.rows_of(tasks.support[17, :1, :1])[0, 0], 0]))
    same = [t for t in range(30) if np.isclose(table.values[table.rows_of(tasks.support[t, :1, :1])[0, 0], 0], first)]
    assert same[0] == 17, "another seed is needed: an earlier task begins with the same image"
    body = f"if ((support[:, 0, 0, 0] - {first!r}).abs() < 1e-6).any(): raise ValueError('no such bird')\n    {ZEROS}"
    mine = write("seventeen.py", predict_with(body))
    testbed = jobs.run_in_foreground(spec_of(("protonet", str(Path(mine).absolute())), n_tasks=30, sampler=few))
    assert [row["label"] for row in testbed.summary["results"]] == ["ProtoNet"]
    assert testbed.summary["results"][0]["accuracy"] == run.summary["results"][0]["accuracy"]
    assert testbed.summary["failed"][0]["error"] == (
        "seventeen.py fails on task 17: ValueError: no such bird (line 3 of seventeen.py)."
    )
    lines = run_comparison.method_runs(testbed.id, jobs.spec(testbed.id), jobs.chunks(testbed.id), testbed.summary)
    assert [line.label for line in lines] == ["ProtoNet"] and lines[0].result  # what was kept is of the right line


def test_a_run_whose_every_method_is_broken_ends_in_that_sentence(toy, capsys) -> None:
    words = ["evaluate", "toy", "--backbone", "alpha_net", *TASKS, "--methods"]
    assert "'(' was never closed" in fails(capsys, *words, write("syntax.py", "def predict("))
    message = fails(capsys, *words, write("wrong.py", predict_with("raise KeyError('x')")))
    assert message.startswith("fsviz: wrong.py fails on task 0: KeyError: 'x' (line 3 of wrong.py).")
    assert "cannot be read" in fails(capsys, *words, "./absent.py")


def test_gradients_work_and_the_generator_is_seeded(toy) -> None:
    learns = predict_with(
        "w = torch.randn(support.shape[1], support.shape[3], requires_grad=True)\n"
        "    loss = (support.mean(2) - w).square().sum(); loss.backward()\n"
        "    return torch.einsum('wd,tmd->twm', w - w.grad, query)"
    )
    mine = str(Path(write("learns.py", learns)).absolute())
    runs = [jobs.run_in_foreground(spec_of((mine,), n_tasks=10)) for _ in range(2)]
    assert runs[0].summary["results"] == runs[1].summary["results"]


# --- only where the user starts it -------------------------------------------------------------------------------


def test_code_runs_only_in_a_process_that_was_asked_to(toy, monkeypatch) -> None:
    mine = str(Path(write("mine.py", "raise RuntimeError('it ran')")).absolute())
    monkeypatch.setattr(user_code, "_allowed", False)
    with pytest.raises(NotAllowed, match=r"mine\.py is user code"):
        jobs.run_in_foreground(spec_of((mine,)))
    with pytest.raises(BadInput, match="not in the background"):
        jobs.submit(spec_of((mine,)))


def test_a_recorded_run_shows_on_the_page_and_is_resumed_by_a_command_only(toy, capsys, monkeypatch) -> None:
    mine = write("mine.py", FINE)
    broken = write("nan.py", predict_with(f"{ZEROS} * torch.nan"))
    methods = f"protonet,{mine},{broken}"
    answer = run_json(capsys, "evaluate", "toy", "--backbone", "alpha_net", "--methods", methods, *TASKS)
    file = Path("mine.py").absolute()
    file.write_text("raise RuntimeError('it ran')")
    monkeypatch.setattr(user_code, "_allowed", False)
    monkeypatch.chdir(APP.parent)  # whose settings the server reads
    page = open_link("runs", "toy", runs=answer["run"])
    assert any("mine.py" in str(e.value) for e in page.get("html") + page.get("markdown") + list(page.dataframe))
    assert any("returned NaN or infinity on task 0" in w.value for w in page.warning)
    for chunk in (jobs.folder(answer["run"]) / "chunks").iterdir():
        chunk.unlink()
    with pytest.raises(BadInput, match=r"mine\.py is your own code, which runs only where you start it"):
        jobs.resume(answer["run"])
    assert "changed since the run started" in fails(capsys, "runs", "resume", answer["run"])
    file.write_text(FINE)
    assert run_json(capsys, "runs", "resume", answer["run"])["results"] == answer["results"]


def test_a_function_of_a_notebook_ends_with_it(toy, monkeypatch) -> None:
    run = jobs.run_in_foreground(spec_of((user_code.keep(protonet.predict),), n_tasks=10))
    assert run.summary["results"][0]["label"] == "predict"
    assert run_comparison.command(jobs.spec(run.id)) == ""
    monkeypatch.setattr(user_code, "_functions", {})
    with pytest.raises(BadInput, match="a notebook that has ended"):
        evaluate.entries(jobs.spec(run.id))[0].code  # noqa: B018


def test_two_methods_of_one_name_are_refused(toy) -> None:
    Path("other").mkdir()
    files = [str(Path(write(name, FINE)).absolute()) for name in ("mine.py", "other/mine.py")]
    with pytest.raises(BadInput, match=r"Two methods are named mine\.py"):
        jobs.run_in_foreground(spec_of(files))
    with pytest.raises(BrokenCode, match="neither a function nor a class"):
        user_methods.load_method(user_code.locate(f"{files[0]}:__name__"))
