// One way of calling a compiled program, resolved once: which variables are fed, which are fetched. Calling it again
// looks nothing up by name. Made for one CompiledProgram, which must outlive it; when the program has been edited
// since, it is stale and must be made again.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/compiled_program.h"
#include "engine/feed.h"
#include "engine/step.h"

namespace anabranch {

class PreparedRun {
 public:
  struct Fed {
    std::string name;
    DType dtype;
    Shape declared;
    bool checked;      // made by fluid.data, which promises to check what is fed
    bool persistable;  // fed whole to every replica, unless there is exactly one whole a replica
  };

  // NotFound for a fed name that the program does not have.
  PreparedRun(CompiledProgram& program, const std::vector<std::string>& feeds, std::vector<std::string> fetches);

  bool stale() const;
  const std::vector<Fed>& fed() const { return fed_; }
  const std::vector<std::string>& fetches() const { return key_.fetches; }
  // What fluid.data promises holds for this batch of the i-th fed variable.
  bool fits(size_t i, const Tensor& batch) const;

  // `batch`, in the order of the constructor's names, is one whole batch. `between` is called between iterations; `use`
  // with the plan that ran, whose fetched values keep until it returns.
  void run(std::span<const Tensor> batch, const std::function<void()>& between,
           const std::function<void(const Step&)>& use);

 private:
  void take(std::span<const Tensor> batch);

  CompiledProgram& program_;
  uint64_t version_;
  std::vector<Fed> fed_;           // in the caller's order
  std::vector<size_t> key_order_;  // key_.feeds[i] is fed_[key_order_[i]]
  StepKey key_;
  std::vector<Tensor> batch_;  // in key order
  std::vector<char> whole_;
  Pieces pieces_;
  Step* step_ = nullptr;     // of the last run
  uint64_t generation_ = 0;  // of the plans when step_ was found
};

}  // namespace anabranch
