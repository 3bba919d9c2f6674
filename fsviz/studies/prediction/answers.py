"""The answer to "Can accuracy be predicted without query labels?" in one sentence."""

from __future__ import annotations

from fsviz.difficulty.measures import lower_title
from fsviz.features.backbones import title_of
from fsviz.studies.prediction.measured import (
    MIN_TASKS,
    MeasureCorrelation,
    PredictionTasks,
    best_measure,
    correlations,
    mean_outcome,
    outcome_name,
    prediction_error,
)


def answer(tasks: PredictionTasks) -> tuple[str, str]:
    """The answer for these tasks, and what it is compared with.

    With unlabelled queries the classifier predicts its accuracy: the error of that. Otherwise the best measure.
    """
    outcome = outcome_name(tasks.spec)
    setting = _describe_setting(tasks)
    best = best_measure(correlations(tasks))
    if tasks.spec["setting"] == "semi" and len(tasks) >= MIN_TASKS:
        sentence = _describe_error(tasks)
        return sentence, f"{_describe_best(best)} {setting}" if best else setting
    if best is None:
        need = f"needs at least {MIN_TASKS} tasks" if len(tasks) < MIN_TASKS else "is undefined for these tasks"
        return f"The correlation of measures with {outcome} {need}.", setting
    name, row = best
    interval = f"r = {_interval(row)}"
    if _includes_zero(row):
        return f"No measure predicts {outcome} reliably: {lower_title(name)} is best, {interval}.", setting
    r2 = f"It explains {100 * row['pearson'] ** 2:.0f}% of the variance of the {outcome} in a linear fit."
    return f"{_capital(lower_title(name))} predicts {outcome} best: {interval}.", f"{r2} {setting}"


def _describe_setting(tasks: PredictionTasks) -> str:
    """The tasks, their features, and the mean outcome with the method that it is of."""
    mean, half = mean_outcome(tasks)
    outcome = outcome_name(tasks.spec)
    of = " of logistic regression" if outcome == "accuracy" else ""
    return (
        f"{len(tasks):,} {tasks.tasks.setting} task{'s' * (len(tasks) != 1)}, {title_of(tasks.spec['backbone'])} "
        f"features; mean {outcome}{of}: {_percent(mean, half)}."
    )


def _describe_error(tasks: PredictionTasks) -> str:
    """The error of the predicted accuracy, compared with always predicting the mean."""
    error = prediction_error(tasks)
    start = f"Predicted accuracy is off by {_points(error['error'], error['error_ci95'])} points"
    gain, half, constant = error["gain"], error["gain_ci95"], f"{100 * error['constant']:.1f}"
    if half is not None and abs(gain) > half:
        return f"{start} (always predicting the mean: {constant})."
    return f"{start}, not significantly better than always predicting the mean ({constant})."


def _describe_best(best: tuple[str, MeasureCorrelation]) -> str:
    return f"Best measure: {lower_title(best[0])}, r = {_interval(best[1])}."


def _interval(row: MeasureCorrelation) -> str:
    return f"{row['pearson']:.2f} (95% CI {row['low']:.2f} to {row['high']:.2f})"


def _includes_zero(row: MeasureCorrelation) -> bool:
    return bool(row["low"] <= 0 <= row["high"])


def _points(value: float, half: float | None) -> str:
    return f"{100 * value:.1f}" + ("" if half is None else f" ± {100 * half:.1f}")


def _percent(value: float, half: float | None) -> str:
    return f"{_points(value, half)}%"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
