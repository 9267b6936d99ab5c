// Some kernels only start the work of their node: a pull waits for another machine, a collective for other processes.
// Such an op declares kAsynchronous; its kernel takes the node's Completion and returns, and the code that gets the
// result ends the node with done() or fail(), once, from any thread. Nodes that wait for it run then; everything else
// runs meanwhile.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "opdef/kernel_context.h"

namespace anabranch {

// Receives the ends of nodes. Shared: a completing thread may still be inside when the run has ended.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void complete(int node, std::exception_ptr error) noexcept = 0;
  // The run has failed: pending work must end soon, successfully or not.
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
  ~Completion();  // a completion that was dropped fails its node, so that no node waits for ever

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

// The context of such an op's kernel. A kernel that does not take the completion has ended its node.
class AsyncContext : public KernelContext {
 public:
  AsyncContext(const KernelContext& of_node, Completion completion)
      : KernelContext(of_node), completion_(std::move(completion)) {}
  // Internal if the op does not declare kAsynchronous.
  static AsyncContext& of(KernelContext& c);

  Completion take() { return std::move(completion_); }
  bool taken() const { return !completion_; }
  void drop() { completion_.drop(); }

 private:
  Completion completion_;
};

}  // namespace anabranch
