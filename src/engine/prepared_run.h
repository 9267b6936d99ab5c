// One way of calling a compiled program, resolved once: its fed and fetched variables. Calling it again looks up no
// name. Created for one CompiledProgram, which must outlive it; after the program was edited it is stale and must be
// created again.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/binding.h"
#include "engine/compiled_program.h"
#include "engine/feed.h"

namespace anabranch {

class PreparedRun {
 public:
  // NotFound for a fed name that the program does not have. `of_one`: a batch
  // has the rows that the program declares for one replica, not for all.
  PreparedRun(CompiledProgram& program, const std::vector<std::string>& feeds, std::vector<std::string> fetches,
              bool of_one = false);

  bool stale() const;
  const std::vector<Fed>& fed() const { return fed_; }
  const std::vector<std::string>& fetches() const { return key_.fetches; }

  // `batch`, in the order of the constructor's names, is one whole batch. `between` is called between iterations; `use`
  // with the plan that ran, whose fetched values are valid until it returns.
  void run(std::span<const Tensor> batch, const std::function<void()>& between,
           const std::function<void(const Step&)>& use);
  // The same with a batch for each replica.
  void run_each(const Slices& batches, const std::function<void()>& between,
                const std::function<void(const Step&)>& use);

 private:
  void take(std::span<const Tensor> batch, int devices, std::vector<Tensor>* taken);
  void run_slices(int active, const std::function<void()>& between, const std::function<void(const Step&)>& use);

  CompiledProgram& program_;
  uint64_t version_;
  int devices_;
  std::vector<Fed> fed_;           // in the caller's order
  std::vector<size_t> key_order_;  // key_.feeds[i] is fed_[key_order_[i]]
  StepKey key_;
  std::vector<Tensor> batch_;  // in key order
  std::vector<char> whole_;
  Slices slices_;
  Binding* binding_ = nullptr;  // of the last run
  uint64_t generation_ = 0;     // of the plans when binding_ was found
};

}  // namespace anabranch
