"""Every page on a workspace that is damaged in many places, read-only or full: rows and sentences, no traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz import jobs
from fsviz.sampling.testbeds import save_testbed
from fsviz.studies import evaluate
from fsviz.ui.parts import deferred
from fsviz.ui.parts.page import PAGES
from tests.studies.toy_dataset import make_toy, save_toy_features

ROOT = Path(__file__).resolve().parent.parent.parent
SPEC = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "methods": ["protonet"], "device": "cpu"}
SAMPLER = {"sampler": "semantic", "n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 40}
FEW = {"n_tasks": "50", "n_way": "3", "n_shot": "2", "n_query": "5"}
IMPOSSIBLE = {
    "seed": "1e400",
    "n_way": "-1e400",
    "n_shot": "",
    "n_query": "NaN",
    "n_tasks": "99999999999999999999999",
    "alpha": "inf",
    "beta": "1e400",
    "window": "1e400",
    "image": "1e400",
    "page": "1e400",
    "k": "1e400",
    "split": "\x00",
    "sampler": "nope",
    "runs": "../../x",
    "testbeds": "nowhere",
    "backbones": "nope",
    "methods": "zz",
}


def open_page(name: str, **query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    app.session_state[deferred.STANDS] = True  # its figures are there
    app.switch_page(f"pages/{name}.py")
    for key, value in {"dataset": "toy", **query}.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception, (name, query, app.exception[0].value)
    return app


def words(app: AppTest) -> str:
    kinds = (app.error, app.warning, app.info, app.caption, app.markdown)
    return "\n".join(str(element.value) for kind in kinds for element in kind).replace("\\", "").replace(":gray[]", "")


def fill() -> jobs.Run:
    """A toy dataset with two backbones, two testbeds and an evaluation."""
    toy = make_toy(noise=2.0)
    save_toy_features(toy, "beta_net", seed=3)
    for seed in (1, 2):
        save_testbed(evaluate.sample_testbed(toy, SAMPLER, seed))
    return jobs.run_in_foreground({**SPEC, "sampler": SAMPLER})


def cut(path: Path, keep: int = 0) -> None:
    path.write_bytes(path.read_bytes()[:keep])


@pytest.fixture(scope="module")
def damaged(tmp_path_factory) -> Iterator[list[Path]]:
    """A workspace with one whole run; the folders of the others, each damaged in its own way."""
    home = tmp_path_factory.mktemp("damaged") / "ws"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(home))
        fill()
        runs = [jobs.run_in_foreground({**SPEC, "sampler": SAMPLER, "seed": seed}) for seed in range(1, 8)]
        folders = [jobs.folder(run.id) for run in runs]
        cut(folders[0] / "spec.json", 30)
        cut(folders[1] / "results.json")
        cut(folders[2] / "inputs" / "tasks.parquet", 100)
        cut(folders[3] / "chunks" / "000000.npz", 100)
        cut(folders[4] / "numbers.npy", 50)
        cut(folders[4] / "chunks" / "000000.npz")
        spec = json.loads((folders[5] / "spec.json").read_text())
        del spec["spec"]["tasks"]
        (folders[5] / "spec.json").write_text(json.dumps(spec))
        spec["spec"] = {"study": "evaluate", "dataset": ["x"], "methods": 3}
        (folders[6] / "spec.json").write_text(json.dumps(spec))
        cut(next(home.glob("features/toy/beta_net*/values.npy")))
        cut(next(home.glob("testbeds/*")), 200)
        (home / "runs" / "20200101-000000-beef").mkdir()
        yield folders


@pytest.mark.parametrize("page", PAGES)
def test_a_page_survives_damage_everywhere(damaged: list[Path], page: str) -> None:
    app = open_page(page, **({"show": "All runs"} if page == "runs" else {}))
    if page == "runs":
        table = app.dataframe[-1].value.set_index("run")
        assert len(table) == 9 and "95% CI over" in words(app)
        broken, without_results = (table.loc[folder.name] for folder in damaged[:2])
        assert broken["state"] == "💥 damaged" and "spec.json" in broken["error"]
        assert f"runs resume {damaged[1].name}" in without_results["error"]
        app.multiselect(key="runs").set_value([folder.name for folder in damaged[2:5]]).run()
        assert not app.exception and "is damaged" in words(app) and "Start a new run" in words(app)
    if page == "evaluate":
        app.multiselect(key="backbones").set_value(["beta_net"]).run()
        assert not app.exception and "extract toy --backbone beta" in words(app)


@pytest.mark.parametrize("page", PAGES)
def test_a_link_with_impossible_values_gives_a_page(damaged: list[Path], page: str) -> None:
    app = open_page(page, **IMPOSSIBLE)
    assert "Ignored from the link: seed=1e400" in words(app) and "is out of range" in words(app)


def test_pages_show_what_a_read_only_or_full_workspace_holds(monkeypatch, small_disk) -> None:
    small_disk.mount("8m")
    monkeypatch.setenv("FSVIZ_HOME", str(small_disk.path))
    run = fill()

    def look_at_every_page() -> None:
        for page in PAGES:
            app = open_page(page, **FEW, **({"show": "All runs"} if page == "runs" else {}))
            if page == "runs":
                assert run.id in set(app.dataframe[-1].value["run"])
            if page in ("evaluate", "runs"):
                assert "95% CI over" in words(app)

    small_disk.remount("ro")
    look_at_every_page()
    small_disk.remount("rw")
    small_disk.fill()
    look_at_every_page()
