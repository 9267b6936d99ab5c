// Nodes of a run that complete asynchronously, after their kernels return.
#pragma once
#include <atomic>
#include <memory>

#include "exec/plan.h"
#include "opdef/completion.h"

namespace anabranch {

class RunState;

class AsyncNodes final : public CompletionSink, public std::enable_shared_from_this<AsyncNodes> {
 public:
  explicit AsyncNodes(int nodes);

  // Called, in the completing thread, for each node that has ended: the threaded executor counts down successors.
  struct Listener {
    void* self = nullptr;
    void (*ended)(void* self, int node, bool well) = nullptr;
  };
  void begin(RunState* state, const Listener& listener);  // before a run

  // Runs the kernel of node i, which throws as any kernel does. True: the node has ended.
  bool start(Plan& plan, int i);
  void complete(int node, std::exception_ptr error) noexcept override;

  bool open(int node) const { return status_[node].load(std::memory_order_acquire) == kOpen; }
  void wait(int node);  // parks until the node has ended
  void wait_all();

 private:
  enum Status : char { kIdle, kOpen };
  const int size_;
  RunState* state_ = nullptr;
  Listener listener_;
  std::unique_ptr<std::atomic<char>[]> status_;
  std::atomic<uint32_t> ended_{0};
  std::atomic<bool> parked_{false};
};

// Runs node i to its completion, in this thread: for blocks and watched runs.
void run_to_end(Plan& plan, int i);
// The same, for a node outside of plans.
void run_to_end(const Kernel& kernel, const KernelContext& of_node);

}  // namespace anabranch
