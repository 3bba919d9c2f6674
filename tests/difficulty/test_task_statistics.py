"""The view of a task in each setting and its measures: compared with hand computation and with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, davies_bouldin_score

from fsviz.difficulty import n_means, similarity_graph
from fsviz.difficulty.measures import MEASURES, MeasureInputs
from fsviz.difficulty.task_statistics import TaskView, task_views
from fsviz.errors import BadInput, Missing
from fsviz.records import PAD, Features, Tasks
from tests.difficulty.clusters import clustered_features, random_tasks


def view_of(features: Features, tasks: Tasks, setting: str = "supervised") -> TaskView:
    """All tasks in one view."""
    (_, view), *more = task_views(features, tasks, setting)
    assert not more
    return view


def one_view(support: list, query: list, setting: str = "supervised", neighbours: int = 15) -> TaskView:
    """A view of one task whose images are given class by class, as directions."""
    s, q = (torch.nn.functional.normalize(torch.tensor(x, dtype=torch.float32), dim=-1) for x in (support, query))
    return TaskView(
        support=s[None],
        support_mask=torch.ones(1, *s.shape[:2], dtype=torch.bool),
        query=q.flatten(0, 1)[None],
        query_mask=torch.ones(1, q.shape[0] * q.shape[1], dtype=torch.bool),
        setting=setting,
        neighbours=neighbours,
    )


@pytest.fixture(scope="module")
def tasks_of_clusters() -> tuple[Features, Tasks]:
    features = clustered_features(n_dims=12, spread=1.2)
    return features, random_tasks(features, 12, 4, 5, 8)


# --- by hand -----------------------------------------------------------------------------------------------------


def test_support_separation_by_hand() -> None:
    # cosines: within the first class 0, within the second 1; across 0, 1, 0, 1
    view = one_view([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[[1, 0]], [[0, 1]]])
    np.testing.assert_allclose(MEASURES["support_separation"](view), [(0 - 0.5 + 1 - 0.5) / 2], atol=1e-6)
    one_shot = one_view([[[1, 0]], [[1, 1]]], [[[1, 0]], [[0, 1]]])
    np.testing.assert_allclose(MEASURES["support_separation"](one_shot), [1 - np.sqrt(0.5)], atol=1e-6)


def test_the_eigenvalue_is_zero_where_the_graph_falls_into_as_many_parts_as_classes() -> None:
    apart = one_view([[[1, 0, 0], [1, 0.1, 0]], [[0, 0, 1], [0, 0.1, 1]]], [[[1, 0, 0]], [[0, 0, 1]]], neighbours=1)
    assert MEASURES["graph_connectivity"](apart)[0] == pytest.approx(0, abs=1e-5)
    # three images in a row of equal weight w: eigenvalues 0, w, 3w
    w = 0.5
    weights = torch.tensor([[[0, w, 0], [w, 0, w], [0, w, 0]]])
    result = similarity_graph.laplacian_eigenvalues(weights, torch.ones(1, 3, dtype=torch.bool))
    np.testing.assert_allclose(result, [[0, w, 3 * w]], atol=1e-6)


def test_a_graph_keeps_the_nearest_of_every_row_and_no_negative_edge() -> None:
    cosines = torch.tensor([[[1.0, 0.9, 0.2, -0.5], [0.9, 1, 0.3, 0.1], [0.2, 0.3, 1, 0.4], [-0.5, 0.1, 0.4, 1]]])
    there = torch.ones(1, 4, dtype=torch.bool)
    result = similarity_graph.nearest_graph(cosines, there, 1)[0]
    np.testing.assert_allclose(result, [[0, 0.9, 0, 0], [0.9, 0, 0, 0], [0, 0, 0, 0.4], [0, 0, 0.4, 0]])
    everything = similarity_graph.nearest_graph(cosines, there, 50)[0]
    assert everything.min() == 0 and everything[0, 3] == 0 and float(everything.diagonal().sum()) == 0
    three = similarity_graph.nearest_graph(cosines, torch.tensor([[True, True, True, False]]), 50)[0]
    assert float(three[3].sum()) == 0 and float(three[:, 3].sum()) == 0


def test_diffusion_by_hand() -> None:
    weights = torch.tensor([[[0, 0.5, 0.0], [0.5, 0, 0], [0, 0, 0]]])  # the third image has no neighbour
    np.testing.assert_allclose(
        similarity_graph.diffusion(weights)[0], [[0.75, 1, 0], [1, 0.75, 0], [0, 0, 0.75]], atol=1e-6
    )


def test_confidence_and_training_loss_by_hand() -> None:
    view = one_view([[[1, 0]], [[0, 1]]], [[[1, 0]], [[0, 1]]], "semi")
    p = torch.softmax(view.scores[0], 0)  # (W, V): support, then queries
    assert MEASURES["prediction_uncertainty"](view)[0] == pytest.approx(-float(p[:, 2:].amax(0).log().mean()), rel=1e-5)
    assert MEASURES["support_loss"](view)[0] == pytest.approx(-float((p[0, 0].log() + p[1, 1].log()) / 2), rel=1e-5)
    assert float(view.expected[0]) == pytest.approx(float(p[:, 2:].amax(0).mean()), rel=1e-5)


# --- against scikit-learn ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["supervised", "semi", "unsupervised"])
def test_clusters_and_their_scores_are_those_of_scikit_learn(tasks_of_clusters, setting: str) -> None:
    view = view_of(*tasks_of_clusters, setting)
    scores = MEASURES["davies_bouldin"](view)
    rand = n_means.adjusted_rand(view.labels, view.clusters, view.mask, view.ways.shape[1])
    for t, (images, clusters) in enumerate(zip(view.images.numpy(), view.clusters.numpy(), strict=True)):
        reference = KMeans(view.ways.shape[1], n_init=10, random_state=0).fit(images)
        centres = np.stack([images[clusters == c].mean(0) for c in range(view.ways.shape[1])])
        assert ((images - centres[clusters]) ** 2).sum() <= 1.03 * reference.inertia_
        assert scores[t] == pytest.approx(davies_bouldin_score(images, clusters), rel=1e-4)
        assert float(rand[t]) == pytest.approx(adjusted_rand_score(view.labels[t], clusters), abs=1e-9)
    if setting == "unsupervised":
        np.testing.assert_allclose(view.outcome, rand)


def test_a_logistic_regression_names_queries_as_that_of_scikit_learn_does(tasks_of_clusters) -> None:
    features, tasks = tasks_of_clusters
    for setting in ("supervised", "semi"):
        view = view_of(features, tasks, setting)
        queries = view.query if setting == "supervised" else view.images[:, view.n_support :]
        agree = []
        for t in range(len(tasks)):
            model = LogisticRegression(C=1e3).fit(view.images[t, : view.n_support], view.labels[t, : view.n_support])
            agree.append((model.predict(queries[t]) == view.predicted[t].numpy()).mean())
        assert np.mean(agree) > 0.9
        right = (view.predicted == view.query_labels).double().mean(1)
        np.testing.assert_allclose(view.outcome, right)


def test_outcome_and_measures_move_together_on_clusters_of_many_widths() -> None:
    """A wider spread is a harder task, and every measure says so in its declared direction."""
    output: dict[str, list[float]] = {}
    for spread in (0.3, 0.8, 1.6, 3.0):
        features = clustered_features(n_dims=12, spread=spread)
        ((_, view),) = task_views(features, random_tasks(features, 12, 4, 5, 8), "semi", neighbours=6)
        output.setdefault("outcome", []).append(float(view.outcome.mean()))
        for name in (
            "support_loss",
            "support_separation",
            "davies_bouldin",
            "graph_connectivity",
            "prediction_uncertainty",
        ):
            sign = 1 if MEASURES[name].direction == "easier" else -1
            output.setdefault(name, []).append(sign * float(MEASURES[name](view).mean()))
    for name, values in output.items():
        # of noise alone all cosines are small, and with them the eigenvalues
        assert values[0] > values[1] and (name == "graph_connectivity" or values[1] > values[3]), name


# --- the same whatever the company, and what is not there does not matter ----------------------------------------


def test_a_task_has_the_same_measures_alone_and_in_company(tasks_of_clusters) -> None:
    features, tasks = tasks_of_clusters
    for setting in ("supervised", "semi", "unsupervised"):
        together, alone = view_of(features, tasks, setting), view_of(features, tasks.take(slice(3, 4)), setting)
        for name, measure in MEASURES.items():
            if all(together.has(need) for need in measure.needs):
                assert measure(alone)[0] == pytest.approx(measure(together)[3], rel=1e-4, abs=1e-5), (setting, name)


def test_padded_images_and_ways_change_nothing(tasks_of_clusters) -> None:
    features, tasks = tasks_of_clusters
    plain = tasks.take(slice(0, 3))

    def wider(ids: np.ndarray) -> np.ndarray:
        return np.pad(ids, ((0, 0), (0, 1), (0, 2)), constant_values=PAD)

    padded = Tasks(
        np.pad(plain.class_ids, ((0, 0), (0, 1)), constant_values=PAD), wider(plain.support), wider(plain.query)
    )
    for setting in ("supervised", "semi", "unsupervised"):
        first, second = view_of(features, plain, setting), view_of(features, padded, setting)
        np.testing.assert_allclose(first.outcome, second.outcome, atol=0.04)
        for name, measure in MEASURES.items():
            if all(first.has(need) for need in measure.needs) and name != "davies_bouldin":
                np.testing.assert_allclose(measure(first), measure(second), rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_the_features_changes_nothing(tasks_of_clusters, scale: float) -> None:
    features, tasks = tasks_of_clusters
    larger = Features("large", "none", features.values * scale, features.image_ids, features.class_ids)
    first, second = view_of(features, tasks, "semi"), view_of(larger, tasks, "semi")
    for name in (
        "support_loss",
        "support_separation",
        "davies_bouldin",
        "graph_connectivity",
        "prediction_uncertainty",
    ):
        np.testing.assert_allclose(MEASURES[name](first), MEASURES[name](second), rtol=1e-3, atol=1e-5)


# --- what is not defined -----------------------------------------------------------------------------------------


def test_davies_bouldin_is_not_defined_for_one_shot_nor_for_equal_images() -> None:
    features = clustered_features()
    one_shot = random_tasks(features, 4, 3, 1, 4)
    assert np.isnan(MEASURES["davies_bouldin"](view_of(features, one_shot))).all()
    assert np.isfinite(MEASURES["davies_bouldin"](view_of(features, one_shot, "semi"))).all()
    same = Features("same", "none", np.ones_like(features.values), features.image_ids, features.class_ids)
    for setting in ("supervised", "semi", "unsupervised"):
        tasks = random_tasks(same, 4, 3, 2, 4)
        for _, view in task_views(same, tasks, setting):
            assert np.isnan(MEASURES["davies_bouldin"](view)).all()
            assert np.isfinite(view.outcome.numpy()).all()
            rest = {n for n, m in MEASURES.items() if n != "davies_bouldin" and all(view.has(x) for x in m.needs)}
            assert all(np.isfinite(MEASURES[name](view)).all() for name in rest)


def test_a_setting_refuses_measures_of_what_it_does_not_show(tasks_of_clusters) -> None:
    with pytest.raises(Missing, match="needs features of the query images"):
        MEASURES["prediction_uncertainty"](view_of(*tasks_of_clusters, "supervised"))
    with pytest.raises(Missing, match="needs features and labels of the support"):
        MEASURES["support_loss"](view_of(*tasks_of_clusters, "unsupervised"))


def test_features_that_are_no_numbers_are_named(tasks_of_clusters) -> None:
    features, tasks = tasks_of_clusters
    values = features.values.copy()
    values[features.rows_of(tasks.support[0, :1, 0])] = np.nan
    spoiled = Features("spoiled", "none", values, features.image_ids, features.class_ids)
    with pytest.raises(BadInput, match=rf"NaN or infinity \(first: image {tasks.support[0, 0, 0]}\)"):
        list(task_views(spoiled, tasks, "semi"))


def test_measures_take_plain_features_too(tasks_of_clusters) -> None:
    view = view_of(*tasks_of_clusters, "semi")
    inputs = MeasureInputs(
        support=3 * view.support, support_mask=view.support_mask, query=view.query, query_mask=view.query_mask
    )
    for name in ("support_separation", "prediction_uncertainty", "graph_connectivity"):
        np.testing.assert_allclose(MEASURES[name](inputs), MEASURES[name](view), rtol=1e-4)


def test_class_overlap_sums_the_pairs_of_a_task() -> None:
    pairs = np.array([[0, 0.5, 0.1], [0.5, 0, 0.2], [0.1, 0.2, 0]])
    inputs = MeasureInputs(positions=np.array([[2, 0, 1], [0, 2, PAD]]), overlaps=pairs)
    np.testing.assert_allclose(MEASURES["class_overlap"](inputs), [0.8, 0.1])
