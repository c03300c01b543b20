"""The messages of the package that name a remedy, as its source has them."""

import ast
import re
from functools import cache
from pathlib import Path

import advice_of_commands
import advice_of_displays
import advice_of_input
import advice_of_maps
import advice_of_measures
import advice_of_methods
import advice_of_objects
import advice_of_own_code
import advice_of_repairs
import advice_of_reports
import advice_of_rows
import advice_of_searches
import advice_of_tables

import skcal

ROOT = Path(skcal.__file__).parent
#: Verbs that open a sentence which says what to do; "pass" and "use" do so anywhere.
_VERBS = (
    "Add Begin Bring Call Check Choose Close Collect Compare Compress Correct Count Define Delete "
    "Divide Drop Estimate Fill Fit Give Leave Let Lower Make Merge Name Pack Plan Put Raise "
    "Recalibrate Remove Repeat Reshape Return Run Save Score Separate Set Store Try Wrap Write"
)
#: A verb with what to do, an option, or a public name.
_REMEDY = re.compile(
    rf"(?:^|[.?!:;] )(?:{_VERBS.replace(' ', '|')})\b(?!$)"
    rf"|[;:,] (?:or )?(?:{_VERBS.lower().replace(' ', '|')})\b(?= [a-z{{])"
    r"|\b[Pp]ass\b(?!$)|\b[Uu]se\b(?!$)|(?<![\w-])--[a-z]|\bpip install\b"
    r"|\bmust (?:return|be finite)\b|\bneeds [a-z_]+="
    r"|\bnumpy\.|\bscipy\.|\bsklearn\.|\bskcal\.|\bpandas\."
)
#: Calls whose texts are no messages: names of modules.
_OF_MODULES = {"import_module", "startswith"}
#: Parts of messages that a test follows to the letter, by the test.
FOLLOWED = {
    # tests/cli/test_advice_of_files.py
    **dict.fromkeys(
        [
            "Pass --drop-missing",
            "Pass --percent.",
            "If these are percentages, pass",
            "If that is a decimal comma, pass --decimal",
            "with a point where --decimal says",
            "separate its fields, not ",
            "If the file has no header, pass --header none",
            "but numbers in line 1. Pass --header none",
            "If commas stand before decimals, quote the numbers",
            "Name the column of labels by --label",
            "Repeat --ignore for each column",
            "Pass --ignore '' if it numbers",
            "by --score; other columns are then",
            "pass --soft",
            "Name one by --prefix",
            "Pass the labels in their order, such as --labels",
            "name the positive one by --pos-label",
            "To leave out such samples",
            "If these are logits, pass --logits",
            "Leave --logits out",
            "for logits --logits",
            "pass --log-probabilities: the mean",
            "Leave --log-probabilities out",
            "If it was rounded, pass --normalize",
            "If that is rounding, pass --normalize",
            "as is the probability of the class that a model predicts",
            "pass it by --predicted",
            "probability of one event, pass --ignore",
            "Name the one that holds what happened by --label",
            "If it is no class, pass --ignore",
            "Pass --encoding",
        ],
        "tests/cli/test_advice_of_files.py::test_advice_is_followed",
    ),
    **dict.fromkeys(
        [
            "is read already. Pass the name of a file.",
            "of --drop-label. Leave the option out.",
            "or pass a column of fewer.",
            "Check the columns of predictions, labels and",
        ],
        "tests/cli/test_counted.py::test_advice_of_blocks_is_followed",
    ),
    # tests/table/test_tensors.py
    **dict.fromkeys(
        ["Pass numbers of columns", "Pass probabilities, or from_logits=True"],
        "test_bad_tensors_are_named_and_the_advice_is_followed",
    ),
    **dict.fromkeys(
        [
            "Use fewer bins, or bins of equally",
        ],
        "tests/table/test_report_of_table.py::test_bins_that_hold_few_samples_are_mended",
    ),
    # tests/cli/test_monitor_command.py
    "shows which subgroups are off.": "test_the_exit_status_tells_the_alarm",
    "Pass a skcal.Sample for these": "tests/table/test_report_of_table.py::test_what_a_report",
    "and all rows before it are {}": "tests/cli/test_counted.py::test_another_model_in_a_late",
    "Pass --strategy quantile to hold": "tests/cli/test_counted.py::test_an_option_that_needs",
    "Count a skcal.CalibrationTable where": "tests/table/test_engines.py::test_the_group_by_of_the",
    "--cv 3 or more, or --outer-cv": "tests/cli/test_words_of_commands.py::test_too_few_folds",
    # tests/cli/test_advice_of_commands.py
    "standard input: is closed": "test_a_file_is_named_where_the_standard_input_is_closed",
    "reading it needs pandas": "test_files_need_pandas_as_the_message_says",
    "does not suffice. Pass fewer samples": "test_a_lack_of_memory_names_options_that_the_command",
    "or --n-jobs 1": "test_a_lack_of_memory_names_options_that_the_command_has",
    "not numbers. Name the column of probabilities": "test_a_column_of_times_is_not_of_numbers",
    "of P(positive) by --score.": "test_columns_without_names_of_labels_are_named_by_the_score",
    "fewer --bins, or leave --bins out": "test_too_many_bins_of_a_plot_name_the_option",
    # tests/cli/test_max_error.py
    "report --by {} compares": "tests/cli/test_conclusions.py::test_what_is_right_on_average",
    "--all-rows shows": "test_many_subgroups_are_a_table_the_worst_first_and_all_with_details",
    "the column of --predicted holds": "tests/cli/test_forms.py::test_predicted_names_that_are",
    "in the order of numbers": "tests/cli/test_forms.py::test_digits_as_texts_have_two_orders",
    "events of {}": "tests/cli/test_forms.py::test_two_labels_are_named_with_their_numbers",
    "pass --log-probabilities in place": "tests/cli/test_forms.py::test_log_probabilities",
    "pass two files, or one with --score": "tests/cli/test_forms.py::test_two_columns_of_a_file",
    "Write 1 or 0, true or false": "tests/cli/test_forms.py::test_words_of_judges",
    "The command report shows each by --by": "tests/cli/test_forms.py::test_rows_of_several_models",
    "Name the array of predictions by --score": "tests/cli/test_forms.py::test_arrays_of_other",
    "Leave candidates out, or pass TemperatureScaling": "test_a_map_of_classes_in_place_of_options",
    ", or pass BayesianCalibration(monotone=False)": "test_a_truth_that_falls_is_warned_of_and",
    # tests/hypothesis_tests/test_rounding.py
    "or pass a notion of single": "test_a_step_is_refused_where_vectors_are_read",
    # tests/test_recalibrated_classifier.py
    "Pass groups to fit, too": "test_a_splitter_of_groups_without_groups_asks_for_them",
    "Pass another map, or Recalibrator([the": "test_a_map_that_does_harm_is_kept_from_it_as_the",
    "If so pass y - 1.": "tests/recalibration/test_labels_of_maps.py::test_labels_counted",
    "or pass a number of folds.": "test_folds_without_weight_are_mended_as_the_message_says",
    "Pass fewer folds or {}.": "test_folds_of_few_groups_are_refused_with_a_number_that_works",
    "Pass {}finer groups": "test_folds_of_few_groups_are_refused_with_a_number_that_works",
    "--outer-cv is for --search": "tests/cli/test_main.py::test_outer_folds_need_the_search",
    "in the order of these columns by --labels": "test_columns_of_other_names_are_read_in",
    "is named as percentages": "tests/cli/test_forms.py::test_percentages_below_1_are_two_readings",
    "holds the most probable class in all": "test_two_columns_of_as_many_labels_are_both_named",
    **dict.fromkeys(
        [
            "--empty-label {} --pos-label {}.",
            "If an empty cell is the other class, pass",
            "is the label of these rows, pass --empty-label",
            "--score {} --logits.",
            "log-odds, pass",
            "in place of --weight",
            "as those of training are, whose",
            "of another model or version, write",
            "If each row stands for so many samples, pass --count {}. {}",
            "pass --bounds.",
            "If they mark missing values, pass {}.",
            "If they stand twice by mistake, pass --distinct",
            "which is no number of samples",
            "Name the one with predictions by --sheet",
            "these answers are wrong, pass --pos-label",
            "is not one of the words",
            "Write each table into a file of its own, and pass all of them",
            "of probabilities. Name one by --score",
            "Leave out an --only",
            "Pass one of these by --only",
        ],
        "tests/cli/test_exports.py",
    ),
    "If it holds sample weights, pass --weight": "tests/cli/test_clusters.py::test_weights_that",
    "limits are too narrow: pass --groups": "tests/cli/test_clusters.py::test_rows_that_may_belong",
    "If these are shares of the classes, pass --soft": "test_shares_in_place_of_labels_name_the",
    "beside probabilities. Save all on one scale.": "test_another_scale_in_later_blocks_is_named",
    # tests/cli/test_codes.py
    "as probabilities are. Leave {} out.": "test_probabilities_are_not_read_as_logits_or_percentag",
    "marks missing values, pass --missing": "test_codes_among_predictions_are_named_and_left_out",
    "numpy.asarray({}) != {}": "the same of rows, in tests/advice_of_input.py",
    **dict.fromkeys(
        [
            "Leave --resolution out, or pass --notion",
            "or leave --resolution out.",
            "is named by --soft.",
            "Leave --predicted out, or name that",
            "name by --label a column of 1",
            "Save a row for each sample, of one number",
            "Fit it to a file in which samples lack options",
            "makes the other label the event.",
            "belong together, name it by --groups.",
            "holds sample weights, name it by --weight.",
            "--log-probabilities gives the same.",
        ],
        "tests/cli/test_two_readings.py",
    ),
    **dict.fromkeys(
        ["which stands in its rows, too", "If that line is a sample, pass --header none"],
        "tests/cli/test_wild_forms.py::test_a_file_that_begins_with_a_sample_is_told_from_one",
    ),
    "and a STATE of its own": "tests/cli/test_wild_forms.py::test_a_monitor_says_that_errors",
    "no outcome, pass": "tests/cli/test_wild_forms.py::test_a_third_label_of_few_samples",
    "as --normalize asks.": "tests/cli/test_forms.py::test_rounding_above_1_is_read_or_offered",
    # tests/metrics/test_bootstrap.py
    "Pass n_jobs=1 to see": "test_an_exception_that_pickle_loses_names_the_call_that_shows_it",
    **dict.fromkeys(
        [
            "Fit a SegmentRecalibrator to th",
            "Fit a Recalibrator to ",
            "separately (recalibrate ",
            "Recalibrate the worst segment (",
            "Commands recalibrate no segment such as the worst one",
        ],
        "tests/report/test_advice_by_part.py",
    ),
    **dict.fromkeys(
        ["measure={} is unknown", "No subgroup has the measure"],
        "tests/report/test_centres.py::test_forest_plots_have_a_row_for_each_subgroup_and_for_a_new_one",
    ),
    # tests/metrics/test_refinement.py
    "cv=2 needs 4": "test_too_few_samples_are_refused_with_the_least_number_and_the_remedy_works",
    "Pass notion='canonical' or 'classwise'": "test_notions_of_the_predicted_class_are_refused",
    # tests/metrics/test_matrix_kernels.py
    "or pass notion='canonical': an": "test_matrices_of_another_size_are_refused_as_followed",
    "Of a kernel k of two points pass": "test_a_kernel_of_two_points_is_passed_as_the_message_says",
    # tests/test_advice.py
    "Leave {} out, or pass {}={}.": "test_options_that_are_not_used_are_left_out_or_used_as_the",
    **dict.fromkeys(
        ["to_frame() needs pandas", "Displays need matplotlib", "Figures need matplotlib"],
        "test_what_is_not_installed_is_needed_as_the_message_says",
    ),
    "report has no figures, since": "test_a_page_without_figures_says_how_to_have_them",
    "Callbacks need scikit-learn 1.9": "tests/test_callbacks.py",
    # tests/test_running.py
    "times a worker of the cluster died": "test_calls_that_are_lost_with_a_worker_are_made_again",
    "are of no class, leave them out": "tests/cli/test_two_readings.py::test_a_third_class",
    "Pass notion='multi-label' and": "test_several_labels_are_read_as_the_message_says",
    "pass notion='multi-label', or one label": "test_several_labels_are_read_as_the_message_says",
    "pass the labels as integers": "test_digits_as_texts_warn_where_numbers_have_another_order",
    "of log-probabilities pass numpy.exp": "test_log_probabilities_are_read_as_the_message_says",
    "If these are shares of the positive class": "test_shares_are_read_as_the_message_says",
    "fit skcal.recalibration.PlattScaling(": "test_points_are_recalibrated_as_the_message_says",
    "pass numpy.exp({}) without from_logits": "test_log_probabilities_are_read_as_the_message_says",
}
#: Whole texts that a table of cases follows, in tests/test_advice.py and tests/cli.
OF_FUNCTIONS = {**advice_of_input.CASES, **advice_of_methods.CASES, **advice_of_maps.CASES}
OF_FUNCTIONS |= {
    **advice_of_objects.CASES,
    **advice_of_searches.CASES,
    **advice_of_displays.CASES,
    **advice_of_own_code.CASES,
    **advice_of_measures.CASES,
    **advice_of_reports.CASES,
    **advice_of_tables.CASES,
}
CASES = {**OF_FUNCTIONS, **advice_of_commands.CASES, **advice_of_repairs.CASES}
CASES |= {**advice_of_rows.CASES, **advice_of_rows.NEEDED}
_HELP = {"help", "description", "epilog", "metavar"}


@cache
def collected():
    """Each text of the source that names a remedy: (file, text), with {} for what is filled in.

    Docstrings and the help of options are none.
    """
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        aside = _docstrings(tree) | _help(tree) | _names(tree)
        for node in ast.walk(tree):
            text = _text(node)
            if text is None or node in aside or not _REMEDY.search(text):
                continue
            if re.fullmatch(r"[{}]*(--[\w-]+( [{}]+| COLUMN| and |))+\s*", text):  # options alone
                continue
            aside |= set(ast.walk(node)) - {node}
            found[str(path.relative_to(ROOT)), " ".join(text.split())] = None
    return list(found)


def _text(node):
    """The text of a string, or of one with places to fill."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
        return "".join(parts)
    return None


def _docstrings(tree):
    return {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


def _names(tree):
    """Nodes of names of modules."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = [call for call in calls if _name(call.func) in _OF_MODULES]
    return {part for call in called for argument in call.args for part in ast.walk(argument)}


def _name(function):
    return getattr(function, "attr", getattr(function, "id", ""))


def _help(tree):
    """Nodes of the help of options: keywords, values of dicts and tables."""
    found = set()
    for node in ast.walk(tree):
        targets = [target.id for target in getattr(node, "targets", ()) if hasattr(target, "id")]
        is_help = isinstance(node, ast.keyword) and node.arg in _HELP
        if is_help or not {"_FILES", "_OPTIONS_TABLE", "_COMMANDS_TABLE"}.isdisjoint(targets):
            found |= set(ast.walk(node))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and str(key.value).startswith("--"):
                    found |= set(ast.walk(value)) | {key}
    return found


def not_followed():
    """The texts of messages that no test follows to the letter."""
    texts = {text for _, text in collected()} - CASES.keys()
    return {text for text in texts if not any(part in text for part in FOLLOWED)}


def matches(text, told):
    """Whether what was told holds a text of the source, with anything where it is filled in."""
    pattern = ".*".join(map(re.escape, text.split("{}")))
    return re.search(pattern, " ".join(told.replace("skcal: ", "").split())) is not None
