// Training, or a pass without training, over all batches of a stream, without calls into the caller's language: reader
// threads parse while training threads run. One training thread runs the given program in its scope, batch after batch,
// with the bits of feeding the same batches by hand. Several threads take batches as they arrive, share the rows of
// tables and merge everything else (engine/trainer_states.h); their results do not repeat bit for bit.
//
// The thread that calls run() does not train: it waits, reports, and handles interrupts. A TrainLoop is reused for the
// next pass, so that plans are created once. One caller at a time.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/compiled_program.h"
#include "engine/ranking_counts.h"

namespace anabranch {

struct RankedFetches {  // indices in TrainLoopOptions::fetch
  size_t predict, label;
  std::optional<size_t> group;
};

struct TrainLoopOptions {
  int trainers = 1;
  std::vector<std::string> fetch;     // shown to the caller: values of the first training thread
  int64_t show_every = 100;           // of its batches; 0: only on request
  int64_t merge_every = 0;            // batches of a thread between two merges; 0: chosen by the cost of a merge
  std::vector<size_t> averaged = {};  // indices in fetch: values with a mean over the pass
  std::vector<RankedFetches> ranked = {};
};

struct TrainProgress {
  int64_t batches = 0, rows = 0;
  double seconds = 0;     // since the start of the pass
  double waited_s = 0;    // for batches, summed over threads
  double running_s = 0;   // of the program, summed over threads
  double share_done = 0;  // 0 to 1, of the input
  int64_t rows_expected = -1;
  std::vector<double> means;  // of the averaged fetches over all batches, weighted by their rows; only of a whole run
};

struct TrainCallbacks {  // called in the thread that called run(); an exception ends the pass and is rethrown by run()
  std::function<void(const TrainProgress&)> tick;  // about ten times a second, and once at the end
  // Values of the fetched variables in batch `batch` (from 1) of the first training thread.
  std::function<void(int64_t batch, const std::vector<Fetched>&, const TrainProgress&)> show;
};

class TrainLoop {
 public:
  // One training thread: runs `program`, which must outlive this.
  TrainLoop(CompiledProgram& program, const ir::ProgramRef& desc, TrainLoopOptions options);
  // Several: the program is compiled for each of them.
  TrainLoop(const ir::ProgramRef& program, std::shared_ptr<Scope> scope, TrainLoopOptions options);
  TrainLoop(TrainLoop&&) noexcept;
  ~TrainLoop();

  // Returns when the stream has ended and every batch has been trained on. The first error of a training thread or of
  // the stream ends the pass and is thrown; the scope has the values learned until then. go_on: `stream` is a later
  // part of the same pass, whose batches continue the count.
  TrainProgress run(data::BatchStream& stream, const TrainCallbacks& callbacks, bool go_on = false);
  // The counts of each of TrainLoopOptions::ranked, over all batches of the last pass. Not while run() runs.
  std::vector<std::unique_ptr<RankingCounts>> ranking() const;
  void ask_for_values();  // requests show() for the next batch of the first training thread. From a callback

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace anabranch
