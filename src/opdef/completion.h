// Some kernels only begin what their node does: a pull waits for another machine, a collective for other processes.
// Such an op declares kCompletesLater; its kernel takes the node's Completion and returns, and whoever has the result
// ends the node with done() or fail(), once, from any thread. What waits for the node runs then; everything else runs
// meanwhile.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "opdef/kernel_context.h"

namespace anabranch {

// Who is told that a node has ended. Shared: the one who tells may still be inside when the run is over.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void complete(int node, std::exception_ptr error) noexcept = 0;
  // The run has failed: what is under way shall end soon, in whatever way.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void cancel(bool yes = true) { cancelled_.store(yes, std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

class Completion {
 public:
  Completion() = default;
  Completion(std::shared_ptr<CompletionSink> sink, int node) : sink_(std::move(sink)), node_(node) {}
  Completion(Completion&& other) noexcept : sink_(std::move(other.sink_)), node_(other.node_) {}
  Completion& operator=(Completion&& other) noexcept;
  ~Completion();  // of one that was dropped fails its node: nothing may wait for ever

  explicit operator bool() const { return sink_ != nullptr; }
  void done() noexcept { end(nullptr); }
  void fail(std::exception_ptr error) noexcept { end(std::move(error)); }
  bool cancelled() const { return sink_ && sink_->cancelled(); }
  void drop() { sink_ = nullptr; }  // the executor ends the node itself

 private:
  void end(std::exception_ptr error) noexcept;

  std::shared_ptr<CompletionSink> sink_;
  int node_ = -1;
};

// What the kernel of such an op is called with. A kernel that leaves the completion where it is has ended its node.
class LaterContext : public KernelContext {
 public:
  LaterContext(const KernelContext& of_node, Completion completion)
      : KernelContext(of_node), completion_(std::move(completion)) {}
  // Internal when the op does not declare kCompletesLater.
  static LaterContext& of(KernelContext& c);

  Completion take() { return std::move(completion_); }
  bool taken() const { return !completion_; }
  void drop() { completion_.drop(); }

 private:
  Completion completion_;
};

}  // namespace anabranch
