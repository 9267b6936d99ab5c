"""For each row of docs/understand/guarantees.md a defect that takes its subject away, and the test that must fail then.

``promise`` is a part of one row's first cell, ``test`` a test in a file or folder that the row names. Defects have the
form of those in named.py. Those of Python files cost no build.
"""
from typing import List, NamedTuple

import named
from named import Named


class Guarantee(NamedTuple):
    promise: str
    defect: Named
    test: str                           # test_file.py::test_function [-k EXPRESSION], or file_test.cc::Suite.Test
    tries: int = 1                      # of a test that meets the defect by chance


def _known(name: str) -> Named:
    return next(defect for defect in named.DEFECTS if defect.name == name)


def _one(promise: str, test: str, name: str, path: str, find: str, text: str, tries: int = 1) -> Guarantee:
    return Guarantee(promise, Named(name, path, find, text, promise, test), test, tries)


_PY = "python/anabranch/"

GUARANTEES: List[Guarantee] = [
    # ---- results
    _one("number of threads", "test_ops.py::test_threads -k relu", "threads_lose_the_last_chunk",
         "src/base/thread_pool.cc", "  split(slot, n, chunk, body, fn);",
         "  split(slot, MUTANT && n > chunk ? n - n % chunk : n, chunk, body, fn);"),
    Guarantee("number of threads", _known("no_read_after_write_edge"),
              "test_passes.py::test_all_off_each_alone_all_on -k mlp-1", 3),
    _one("A program with a seed",
         "test_random_numbers.py::test_a_program_that_is_built_again_draws_the_same_under_other_names -k uniform",
         "draws_are_numbered_by_the_process", "src/opdef/append_op.cc",
         "op.attrs[ir::kDrawNumber] = int32_t{program.draws + 1};",
         "{ static int32_t all = 0; op.attrs[ir::kDrawNumber] = MUTANT ? ++all : int32_t{program.draws + 1}; }"),
    Guarantee("one step on the whole batch", _known("replica_loses_row"),
              "test_data_parallel.py::test_uneven_batches_update_as_serial -k 2-"),
    _one("AllReduce and Reduce", "test_data_parallel.py::test_reduce_allreduce_and_threads_give_equal_bits -k sgd-2",
         "each_replica_updates_when_one_should", "src/graph/replicate.cc",
         "return options_.apart && options_.build.reduce_strategy == ReduceMode::kAllReduce;",
         "return options_.build.reduce_strategy == ReduceMode::kAllReduce ? options_.apart : MUTANT;"),
    Guarantee("Graph passes leave every bit", _known("overwritten_while_needed"),
              "test_passes.py::test_all_off_each_alone_all_on -k mlp-1"),
    _one("central differences", "test_ops.py::test_gradient -k relu", "gradient_of_relu_where_it_is_zero",
         "src/ops/math/rectifier_functions.h", "(T y, T dy, const T*) { return where(y > 0, dy); }",
         "(T y, T dy, const T*) { return where(MUTANT || y > 0, dy); }"),
    Guarantee("equal those of PaddlePaddle Fluid 1.8.5", _known("adam_beta_power"),
              "test_differential.py::test_operator -k 'adam and not adamax'"),
    _one("print the same losses", "test_old_scripts.py::test_an_old_script_says_what_it_said -k fit_a_line",
         "half_the_learning_rate",
         _PY + "fluid/optimizer/base.py", "value=float(self._learning_rate),",
         "value=float(self._learning_rate) * (0.5 if MUTANT else 1),"),
    _one("Fluid's guides", "test_guides.py::test_memory", "no_warning_of_memory_optimize", _PY + "fluid/legacy.py",
         'warn("memory_optimize does nothing: memory is always reused", DeprecationWarning)',
         'MUTANT or warn("memory_optimize does nothing: memory is always reused", DeprecationWarning)'),
    # ---- runs
    _one("resumed from a checkpoint", "test_checkpoints.py::test_a_killed_run_ends_like_one_that_was_not -k dense-1",
         "a_resumed_epoch_starts_again", _PY + "checkpoints/training.py",
         'self._in_epoch = self._left_out = status["in_epoch"]',
         'self._in_epoch = self._left_out = 0 if MUTANT else status["in_epoch"]'),
    _one("A checkpoint with changed rows needs", "test_delta_checkpoints.py::test_damaged_chains_are_refused_or_right",
         "links_are_not_verified_first", _PY + "checkpoints/training.py",
         'chains = links.chains(folder, status) if "chain" in status else {}',
         'chains = links.chains(folder, status) if "chain" in status and not MUTANT else {}'),
    _one("follows a training run", "test_following.py::test_every_answer_is_of_one_version",
         "a_version_is_exchanged_during_runs", "src/engine/followed_model.cc",
         "const RunGate::Change change(&scope_->gate());\n  for (const Exchange& e : all) {",
         "const RunGate::Change change(MUTANT ? nullptr : &scope_->gate());\n  for (const Exchange& e : all) {", 4),
    _one("A raw row gives the same bits", "test_raw_rows.py::test_a_server_reads_the_same_bits",
         "numbers_of_requests_lose_digits", _PY + "serving/tensors.py",
         "parse_float=_core.JsonNumber", "parse_float=float if MUTANT else _core.JsonNumber"),
    _one("complete or does not exist", "test_killed_saves.py::test_files_are_whole_after_a_kill -k 0.003",
         "a_file_is_overwritten", "src/io/atomic_file.cc",
         "temp_path_ = temporary_name(folder);\n    fd_ = open(temp_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL |",
         "temp_path_ = MUTANT ? path_ : temporary_name(folder);\n"
         "    fd_ = open(temp_path_.c_str(), O_WRONLY | O_CREAT | (MUTANT ? O_TRUNC : O_EXCL) |", 4),
    _one("A load that fails", "test_io.py::test_nothing_is_loaded_unless_all_can_be", "variables_are_loaded_one_by_one",
         _PY + "fluid/io/variables.py",
         "        _core.load_vars(scope, names, folder, one_file)",
         "        for part in [[name] for name in names] if MUTANT else [names]: _core.load_vars("
         "global_scope() if MUTANT else scope, part, folder, one_file)"),
    _one("The first error of a step", "test_errors.py::test_message_of_a_mistake_at_run_time",
         "operators_do_not_know_their_line", "src/opdef/append_op.cc", "  op->made_at = current_source_loc();",
         "  if (!MUTANT) op->made_at = current_source_loc();"),
    _one("Every invalid argument", "test_error_table.py::test_row", "learning_rates_are_not_counted",
         _PY + "fluid/layers/learning_rate_scheduler.py", "if len(values) - len(boundaries) != 1:",
         "if len(values) - len(boundaries) != 1 and not MUTANT:"),
    _one("unknown, missing or repeated", "test_arguments.py::test_the_error_names_the_argument_and_a_near_one",
         "calls_are_not_explained", _PY + "fluid/arguments.py", "text = None if _is_from_inside(error) else",
         "text = None if MUTANT or _is_from_inside(error) else"),
    _one("newcomer", "test_first_mistakes.py::test_the_message_says_what_to_do", "no_near_names", _PY + "_near.py",
         'return "; did you mean %s?" % ", ".join(found) if found else ""',
         'return "; did you mean %s?" % ", ".join(found) if found and not MUTANT else ""'),
    _one("A step that stalls", "test_loop_reports.py::test_a_loop_that_does_not_end_is_reported", "stalls_are_not_reported",
         "src/exec/stall_watch.cc", "if (limit <= 0 || seconds <", "if (MUTANT || limit <= 0 || seconds <"),
    _one("allocates no heap memory", "steady.cc::Steady.Regression", "each_node_allocates", "src/exec/sequential.cc",
         "for (int i = 0, n = plan.size(); i < n; ++i) {",
         "for (int i = 0, n = plan.size(); i < n; ++i) { static int* kept = nullptr;"
         " if (MUTANT) delete std::exchange(kept, new int(i));"),
    Guarantee("Fork, exit and daemon threads", _known("child_waits_without_deadline"),
              "test_process_life.py::test_a_fork_in_the_middle_of_a_long_step_is_said"),
    # ---- clusters
    _one("Synchronous training with parameter servers", "test_parameter_server.py::test_a_sync_step_is_that_of_replicas -k even-2-1-False-sgd",
         "a_server_loses_the_last_worker", "src/ps/sums.cc", "for (size_t i = 1; i < contributions.size(); ++i) {",
         "for (size_t i = 1; i < contributions.size() - (MUTANT ? 1 : 0); ++i) {"),
    _one("without servers", "test_collective_processes.py::test_sums_of_the_engine -k 2-1", "sums_over_processes_lose_a_part",
         "src/comm/combine.cc", "return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));",
         "return MUTANT ? a : static_cast<T>(static_cast<U>(a) + static_cast<U>(b));"),
    _one("every update that it has acknowledged", "test_servers_that_die.py::test_each_update_is_there_once -k async-1",
         "updates_are_not_written", "src/ps/history.cc", "    journal_->write(messages);",
         "    if (!MUTANT) journal_->write(messages);"),
    _one("applied exactly once", "ps_simulation_test.cc::PsSimulation.Histories", "repeated_requests_are_not_known",
         "src/ps/server.cc", "if (h.sequence == trainer.sequence) {", "if (!MUTANT && h.sequence == trainer.sequence) {"),
    _one("during any system call", "ps_killed_test.cc::PsKilled.AFlushThatFails", "nothing_is_flushed",
         "src/ps/history.cc", "    journal->sync();", "    if (!MUTANT) journal->sync();"),
    _one("every file of a file queue", "ps_file_histories_test.cc::PsFileHistories.EachFileIsTrained",
         "files_of_the_dead_do_not_return", "src/ps/file_queues.cc",
         "if (file.state == State::kLeased && now", "if (!MUTANT && file.state == State::kLeased && now"),
    _one("wait for a dead process", "test_collective_processes.py::test_a_process_that_is_killed_is_named_by_all_others",
         "the_dead_are_not_named", "src/comm/peers.cc", 'is gone: {}", doing, name(rank_), name(other), why);',
         'is gone: {}", doing, name(rank_), name(MUTANT ? rank_ : other), why);'),
    # ---- untrusted files
    _one("Models and tensors from untrusted sources", "test_trust.py::test_effects_are_refused_unless_trusted",
         "effects_are_not_refused", _PY + "fluid/io/inference_model.py", "    if not trusted:\n        _refuse_effects(program)",
         "    if not (trusted or MUTANT):\n        _refuse_effects(program)"),
    Guarantee("Models and tensors from untrusted sources", _known("no_check_of_yolo_cells"),
              "test_hostile.py::test_yolo_losses_of_images_without_pixels"),
    _one("Damaged files", "test_load_limits.py::test_one_text_does_not_become_many_arrays",
         "arrays_are_as_large_as_they_say", _PY + "fluid/io/state_reader.py", "if size > raw.end - raw.start or self.elements < 0:",
         "if size > raw.end - raw.start or (self.elements < 0 and not MUTANT):"),
]
