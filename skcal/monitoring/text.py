"""What a monitor knows, in a few lines."""

from __future__ import annotations

from skcal._show import html_list, html_result, number, percent, printable


def summary(monitor) -> str:
    """Return samples, alarm, evidence and estimates as text."""
    if not monitor.e_values_:
        return f"{type(monitor).__name__}: no samples yet"
    seen = f"{monitor.n_samples_seen_:,} samples, {monitor.notion_} calibration"
    evidence = f"e-value {_shown(monitor.e_value_)}, e-detector {_shown(monitor.detector_)}"
    lines = [f"{seen}: {_alarm(monitor)}", evidence]
    title, found = next(iter(monitor.estimates_.items()))
    if title in ("all", monitor.notion_):  # about all samples, not about one class
        limits = f"{number(found.bias_low)} to {number(found.bias_high)}"
        limits = f"{limits}, {percent(1 - monitor.alpha)} at all times"
        lines.append(f"observed - predicted {number(found.bias)} ({limits})")
        if found.error_low > 0:
            lines.append(f"root mean squared calibration error ≥ {number(found.error_low**0.5)}")
    if len(monitor.e_values_) > 1:
        largest = sorted(monitor.e_values_.items(), key=lambda item: -item[1])[:3]
        shown = ", ".join(f"{title}: {_shown(value)}" for title, value in largest)
        lines.append(f"largest e-values: {shown}")
    return printable("\n".join(lines))


def as_html(monitor) -> str:
    """Return the summary for a notebook."""
    first, *others = summary(monitor).splitlines()
    return html_result(first, html_list(others))


def _alarm(monitor) -> str:
    if monitor.alarm_ is None:
        return "no alarm"
    promise = f"false with probability ≤ {percent(monitor.alpha)}"
    if monitor.run_length is not None:
        promise = f"false after {monitor.run_length:,.0f} samples or more on average"
    return f"ALARM at sample {monitor.alarm_:,}, {promise}"


def _shown(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}"
