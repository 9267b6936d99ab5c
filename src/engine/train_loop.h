// Training, or a pass without training, over all batches of a stream, without a step back into the caller's language:
// threads of the reader parse while trainers run. One trainer runs the given program in its scope, batch after batch:
// the bits are those of feeding the same batches to it by hand. Several trainers take batches as they come, share the
// rows of tables and merge what else they learn (engine/trainer_states.h); they do not repeat bit for bit.
//
// The thread that calls run() trains nothing: it waits, reports, and hears of interrupts. A TrainLoop is used again for
// the next pass, so that plans are made once. One caller at a time.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/compiled_program.h"

namespace anabranch {

struct TrainLoopOptions {
  int trainers = 1;
  std::vector<std::string> fetch;  // what is shown: values of the first trainer
  int64_t show_every = 100;        // of its batches; 0: only when asked for
  int64_t merge_every = 0;         // batches of a trainer between two merges; 0: chosen by what a merge costs
};

struct TrainProgress {
  int64_t batches = 0, rows = 0;
  double seconds = 0;     // since the pass began
  double waited_s = 0;    // for batches, summed over trainers
  double running_s = 0;   // of the program, summed over trainers
  double share_done = 0;  // 0 to 1, of the input
  int64_t rows_expected = -1;
};

struct TrainCallbacks {  // called in the thread that called run(); what they throw ends the pass and is thrown by run()
  std::function<void(const TrainProgress&)> tick;  // about ten times a second, and once at the end
  // Values of the fetched variables in batch `batch` (from 1) of the first trainer.
  std::function<void(int64_t batch, const std::vector<Fetched>&, const TrainProgress&)> show;
};

class TrainLoop {
 public:
  // One trainer: runs `program`, which must outlive this.
  TrainLoop(CompiledProgram& program, const ir::ProgramRef& desc, TrainLoopOptions options);
  // Several: the program is compiled for each of them.
  TrainLoop(const ir::ProgramRef& program, std::shared_ptr<Scope> scope, TrainLoopOptions options);
  TrainLoop(TrainLoop&&) noexcept;
  ~TrainLoop();

  // Returns when the stream is at its end and every batch has been trained on. The first error of a trainer or of the
  // stream ends the pass and is thrown; what was learned until then is in the scope.
  // go_on: `stream` is a later part of the same pass, whose batches are counted on.
  TrainProgress run(data::BatchStream& stream, const TrainCallbacks& callbacks, bool go_on = false);
  void ask_for_values();  // show() is called for the next batch of the first trainer. From a callback

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace anabranch
