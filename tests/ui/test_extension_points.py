"""A new sampler, measure, objective, method, study or distance is one file, a page is two: all take it up.

Done for real, in a copy of the code: files are put there and one entry is added, then a process of its own looks.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

NEW = {
    "fsviz/sampling/samplers/rings.py": """
import numpy as np

from fsviz.records import Tasks
from fsviz.sampling.sampler import Sampler
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, Setting

STRIDE = Setting("stride", "Stride", "How far apart in the split the classes of a task are.", "int", 1, 1, 50)


def _classes(pool, n_tasks, seed, n_way, stride):
    start = np.random.default_rng(seed).integers(len(pool.class_ids), size=n_tasks)
    return np.sort(pool.class_ids[(start[:, None] + stride * np.arange(n_way)) % len(pool.class_ids)], axis=1)


def _sample(pool, n_tasks, seed, n_way, stride, n_shot, n_query):
    classes = _classes(pool, n_tasks, seed, n_way, stride)
    images = np.stack([np.flatnonzero(pool.image_class_ids == c)[: n_shot + n_query] for c in pool.class_ids])
    dealt = images[np.searchsorted(pool.class_ids, classes)]
    return Tasks(classes, dealt[..., :n_shot], dealt[..., n_shot:])


SAMPLER = Sampler(
    "rings",
    "Rings",
    "Every so many classes.",
    _sample,
    (N_WAY, STRIDE, N_SHOT, N_QUERY),
    ("images",),
    samples_images=True,
)
""",
    "fsviz/methods/city_block.py": """
from fsviz.methods.declaration import Method, scale

METHOD = Method("city_block", "City block", "2026", 99, "inductive", "The nearest prototype.", (scale(1.0),))


def predict(support, support_mask, query, query_mask, scale=1.0):
    import torch

    from fsviz.methods.geometry import blank, prototypes, with_ways

    apart = torch.cdist(prototypes(support, support_mask), blank(query, query_mask), p=1)
    return with_ways(-scale * apart, support_mask.any(2))
""",
    "fsviz/difficulty/measures/spread.py": """
import numpy as np

from fsviz.difficulty.measures.declaration import Measure

MEASURE = Measure(
    "spread", "Spread of the support", "New.", "s", "s: the spread", "harder",
    ("support",), "2026", 99, "images",
)


def measure(inputs):
    return inputs.support.double().std(dim=(1, 2, 3)).numpy()
""",
    "fsviz/studies/headcount.py": """
import numpy as np

from fsviz import datasets
from fsviz.records import HeadlineNumber
from fsviz.settings import Schema, Setting
from fsviz.studies.study import Part, Study

STEP = Setting("step", "Step", "Classes per chunk.", "int", 4, 1, 50)
SETTINGS = Schema({"step": STEP}, required=("dataset",), of="a headcount")


def prepare(spec, folder):
    return {**spec, "n_classes": datasets.load(spec["dataset"]).n_classes}


def parts(spec):
    return [Part("counting", spec["n_classes"], spec["step"], "classes")]


def run_chunk(spec, part, start, stop):
    return {"n_images": np.bincount(datasets.load(spec["dataset"]).image_class_ids())[start:stop]}


def collect(spec, chunks):
    return {"n_images": int(sum(chunk["n_images"].sum() for chunk in chunks))}


def headline(result):
    return [HeadlineNumber("n_images", "Images", result["n_images"], unit="")]


STUDY = Study(
    name="headcount", title="headcount", settings=SETTINGS, check=SETTINGS.check, prepare=prepare, parts=parts,
    run_chunk=run_chunk, collect=collect, headline=headline,
)
""",
    "fsviz/ui/pages/newest.py": """
import streamlit as st

from fsviz.ui.parts.page import Page


def show(dataset):
    st.metric("Classes", dataset.n_classes)


PAGE = Page(
    slug="newest", label="New page", icon="🆕", group="Results", order=99, question="What is new?",
    lead="A page of {dataset}.", keywords=("novelty",), show=show,
)
""",
    "pages/newest.py": """
from fsviz.ui.pages import newest
from fsviz.ui.parts import shell

shell.run(newest.PAGE)
""",
}
OBJECTIVE = 'Objective("nasty", "Nasty", 1, "nastier", "nastiest", "raises", "semantic", "square"),'
ENTRY = '"squared_path": Distance("Squared path", "New.", lambda dag: path_length(dag) ** 2, 0.1, 1.0),'
LINK_SETTINGS = {
    "classes": {"distance": "squared_path"},
    "sample_tasks": {"distance": "squared_path", "sampler": "rings", "stride": "3", "n_shot": "2", "n_tasks": "50"},
    "evaluate": {
        "sampler": "rings",
        "stride": "3",
        "n_shot": "2",
        "methods": "city_block",
        "city_block_scale": "2",
    },
    "hard_supports": {"sampler": "rings", "stride": "3", "n_shot": "2", "n_tasks": "20", "classifier": "city_block"},
}
LOOK = """
import json, sys
from streamlit.testing.v1 import AppTest
from fsviz.cli import main
from tests.studies.toy_dataset import make_toy

make_toy("toy", n_images=30)
tasks = "--sampler rings --stride 2 --n-tasks 20"
codes = [
    main(f"sample toy {tasks} --distance squared_path --name kept".split()),
    main(f"hard toy {tasks} --objective nasty".split()),
    main(f"evaluate toy {tasks} --methods city_block --set city_block.scale=2".split()),
]
import fsviz
bed = fsviz.sample("toy", sampler="uniform", n_way=3, n_shot=2, n_query=2, n_tasks=4)
measured = fsviz.measure(bed)["spread"].tolist()
codes.append(main(["measures", "--json"]))
from fsviz import jobs
spec = {"study": "headcount", "dataset": "toy"}
run = jobs.run_in_foreground({**spec, "step": 5})
study = {"results": jobs.results(run.id), "computed": jobs.compute(spec), "n_chunks": run.n_chunks}
study |= {"is_found": jobs.find({**spec, "step": 5}).id == run.id, "another": jobs.find(spec), "message": run.message}
codes.append(main(["runs", "show", run.id]))
codes.append(main("sweep headcount toy --vary step --values 2,5".split()))
study["swept"] = fsviz.sweep("headcount", "toy", "step", [2, 5]).table["number"].tolist()
from fsviz.figures.palette import SET_SYMBOLS, meaning
from fsviz.studies import search_comparison
from fsviz.studies import support_sets
hard = {"dataset": "toy", "backbone": "alpha_net", "n_shot": 2, "n_tasks": 4}
nasty = {"hard": support_sets.summary(jobs.compute({"study": "support_sets", **hard}))}
nasty |= {"looks": [meaning("nasty"), SET_SYMBOLS["nasty"]]}
nasty["compared"] = jobs.compute({"study": "search_comparison", "searches": ["fastdiffsel"], **hard})["rows"]
opened = {}
for page, settings in json.loads(sys.argv[1]).items():
    app = AppTest.from_file("app.py", default_timeout=600).switch_page(f"pages/{page}.py")
    for name, text in {"dataset": "toy", **settings}.items():
        app.query_params[name] = text
    app.run()
    link = {k: v[-1] if isinstance(v, list) else v for k, v in app.query_params.items()}
    messages = [e.value for kind in (app.exception, app.error, app.toast) for e in kind]
    options = {key: app.selectbox(key=key).options for key in ("sampler", "distance") if key in app.session_state}
    code = " ".join(c.value for c in app.code)
    opened[page] = {"link": link, "messages": messages, "options": options, "code": code}
app = AppTest.from_file("app.py", default_timeout=600).switch_page("pages/newest.py").run()
links = [link.proto.label for link in app.main.get("page_link")]
lead = app.caption[0].value
new = {"title": app.title[0].value, "lead": lead, "links": links, "n": len(app.exception) + len(app.error)}
print("ANSWER" + json.dumps([codes, opened, measured, new, study, nasty]))
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> list:
    home = tmp_path_factory.mktemp("new")
    copy = home / "copy"
    shutil.copytree(ROOT / "fsviz", copy / "fsviz")  # with its caches, so that nothing is compiled again
    shutil.copytree(ROOT / "pages", copy / "pages")
    shutil.copy(ROOT / "app.py", copy)
    for name in ("data", "tests", ".streamlit"):
        if (ROOT / name).exists():
            (copy / name).symlink_to(ROOT / name)
    for path, text in NEW.items():
        (copy / path).write_text(text)
    distances = copy / "fsviz/taxonomy/distances.py"
    last = '    "features": Distance('
    distances.write_text(distances.read_text().replace(last, f"    {ENTRY}\n{last}"))
    objectives = copy / "fsviz/difficulty/objectives.py"
    last = '        Objective("easy", '
    objectives.write_text(objectives.read_text().replace(last, f"        {OBJECTIVE}\n{last}"))
    (copy / "look.py").write_text(LOOK)
    env = {**os.environ, "FSVIZ_HOME": str(home / "ws"), "PYTHONPATH": str(copy)}
    command = [sys.executable, "look.py", json.dumps(LINK_SETTINGS)]
    done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.rpartition("ANSWER")[2])


def test_commands_take_them(answer) -> None:
    assert answer[0] == [0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("page", LINK_SETTINGS)
def test_pages_and_links_take_them(answer, page: str) -> None:
    opened = answer[1][page]
    assert opened["messages"] == []
    assert LINK_SETTINGS[page].items() <= opened["link"].items()
    if "sampler" in LINK_SETTINGS[page]:
        assert "Rings" in opened["options"]["sampler"]
        assert "--sampler rings" in opened["code"] and "--stride 3" in opened["code"] and "--n-shot 2" in opened["code"]
    if "distance" in LINK_SETTINGS[page]:
        assert "Squared path" in opened["options"]["distance"]


def test_a_measure_is_taken_up(answer) -> None:
    assert len(answer[2]) == 4 and min(answer[2]) > 0


def test_a_page_appears_in_the_row_of_its_group(answer) -> None:
    assert answer[3]["title"] == "What is new?" and answer[3]["n"] == 0
    assert answer[3]["links"][-1] == "New page" and answer[3]["lead"].startswith("A page of **")


def test_a_method_brings_its_settings(answer) -> None:
    assert "--set city_block.scale=2" in answer[1]["evaluate"]["code"]
    assert "--classifier city_block" in answer[1]["hard_supports"]["code"]


def test_an_objective_is_searched_compared_and_shown(answer) -> None:
    nasty = answer[5]
    assert nasty["hard"]["accuracy"]["nasty"] == nasty["hard"]["accuracy"]["hard"]  # its sign is that of hard sets
    assert nasty["looks"] == ["#E66F2B", "square"]
    assert [row["objective"] for row in nasty["compared"]] == ["random", "hard", "nasty", "easy"]


def test_a_study_runs_is_found_and_can_be_computed(answer) -> None:
    study = answer[4]
    assert study["results"] == study["computed"] == {"n_images": 16 * 30}
    assert study["n_chunks"] == 4 and study["is_found"] and study["another"] is None
    assert study["swept"] == [16 * 30, 16 * 30]
