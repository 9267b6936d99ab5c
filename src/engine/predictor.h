// Runs a model repeatedly: one thread at a time, and a clone for each further thread. Clones share the parameters;
// plans and temporaries are separate, so clones run concurrently.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/compiled_program.h"
#include "engine/model_files.h"
#include "engine/prepared_run.h"

namespace anabranch {

class FollowedModel;

class Predictor {
 public:
  // threads: shared by the ops of one run; 0: one per core.
  explicit Predictor(Model model, int threads = 1);
  ~Predictor();
  Predictor(const Predictor&) = delete;

  std::unique_ptr<Predictor> clone() const;
  const Model& model() const { return model_; }
  CompiledProgram& program() { return *program_; }
  int threads() const { return threads_; }

  // Its values are those of a model that is exchanged between runs (engine/follower.h). Clones made afterwards share
  // it.
  void follow(std::shared_ptr<const FollowedModel> followed) { followed_ = std::move(followed); }
  // The version whose values the last run used; 0: those of the model's own files, or nothing was run.
  int64_t version() const { return version_; }

  // Inputs in the order of model().feeds, whose memory is borrowed for the run; outputs in that of model().fetches,
  // valid until the next run. `between` is called now and then, and may throw.
  const std::vector<Tensor>& run(std::span<const Tensor> inputs, const std::function<void()>& between = {});
  // The same without a copy: `use` gets the outputs in the memory of the run, which is valid until it returns.
  using Use = std::function<void(const std::vector<const Tensor*>&)>;
  void run_and_show(std::span<const Tensor> inputs, const std::function<void()>& between, const Use& use);
  // The same into tensors of the caller, one per output.
  void run_into(std::span<const Tensor> inputs, std::span<Tensor> outputs, const std::function<void()>& between = {});

 private:
  const Model model_;
  const int threads_;
  std::shared_ptr<const FollowedModel> followed_;
  int64_t version_ = 0;
  std::unique_ptr<CompiledProgram> program_;
  std::unique_ptr<PreparedRun> run_;
  std::vector<Tensor> outputs_;
  std::vector<const Tensor*> shown_;
};

}  // namespace anabranch
