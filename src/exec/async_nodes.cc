#include "exec/async_nodes.h"

#include "base/futex.h"
#include "exec/run.h"

namespace anabranch {

AsyncNodes::AsyncNodes(int nodes) : size_(nodes), status_(std::make_unique<std::atomic<char>[]>(nodes)) {}

void AsyncNodes::begin(RunState* state, const Listener& listener) {
  state_ = state;
  listener_ = listener;
  cancel(false);
}

bool AsyncNodes::start(Plan& plan, int i) {
  if (plan.is_dynamic(i)) plan.infer(i);
  Plan::Node& node = plan.node(i);
  AsyncContext context(node.context, Completion(shared_from_this(), i));
  status_[i].store(kOpen, std::memory_order_relaxed);
  try {
    node.kernel(context);
  } catch (...) {
    if (context.taken()) {  // the owner of the completion ends the node; the error still belongs to the run
      state_->keep_error(i, std::current_exception());
      return false;
    }
    context.drop();
    status_[i].store(kIdle, std::memory_order_relaxed);
    throw;
  }
  if (context.taken()) return false;
  context.drop();
  status_[i].store(kIdle, std::memory_order_relaxed);
  return true;
}

void AsyncNodes::complete(int node, std::exception_ptr error) noexcept {
  const bool well = error == nullptr;
  if (!well) state_->keep_error(node, std::move(error));
  const Listener listener = listener_;
  status_[node].store(kIdle, std::memory_order_release);
  if (listener.ended) listener.ended(listener.self, node, well);
  // From here on the run may have ended; this object is shared with the caller.
  ended_.fetch_add(1);
  if (parked_.load()) futex_wake_all(ended_);
}

void AsyncNodes::wait(int node) {
  while (open(node)) {
    const uint32_t seen = ended_.load();
    parked_.store(true);
    if (open(node)) futex_wait(ended_, seen, 1000);
    parked_.store(false);
  }
}

void AsyncNodes::wait_all() {
  for (int i = 0; i < size_; ++i) wait(i);
}

namespace {

class OneNode final : public CompletionSink {
 public:
  void complete(int, std::exception_ptr error) noexcept override {
    error_ = std::move(error);
    ended_.store(1, std::memory_order_release);
    futex_wake_all(ended_);
  }
  void wait() {
    while (ended_.load(std::memory_order_acquire) == 0) futex_wait(ended_, 0, 1000);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<uint32_t> ended_{0};
  std::exception_ptr error_;
};

}  // namespace

void run_to_end(Plan& plan, int i) {
  if (!plan.is_async(i)) return plan.run(i);
  if (plan.is_dynamic(i)) plan.infer(i);
  run_to_end(plan.node(i).kernel, plan.node(i).context);
}

void run_to_end(const Kernel& kernel, const KernelContext& of_node) {
  const auto sink = std::make_shared<OneNode>();
  AsyncContext context(of_node, Completion(sink, 0));
  context.call = KernelContext::Call::kLater;
  try {
    kernel(context);
  } catch (...) {
    if (!context.taken()) {
      context.drop();
      throw;
    }
    sink->cancel();
    try {
      sink->wait();
    } catch (...) {  // the kernel's own error came first
    }
    throw;
  }
  if (!context.taken()) return context.drop();
  sink->wait();
}

}  // namespace anabranch
