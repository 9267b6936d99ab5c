// Collective nodes: the kernel submits its work to the thread of the process group and returns.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/group.h"
#include "opdef/completion.h"
#include "ops/distributed/declare.h"

namespace anabranch::distributed {

// The work of one node: memory kept from step to step, and the function that the group's thread calls. A run waits for
// its nodes, so the plan owns this; the group's thread never does, so it never destroys its own group.
template <class Work> class Together final : public comm::Job {
 public:
  Together(int ring, Work work) : ring_(ring), work_(std::move(work)) {}

  void begin(KernelContext& c) {
    const std::shared_ptr<comm::Group>& group = ring_.get();
    values_ = c;
    work_.check(values_, *group);
    completion_ = AsyncContext::of(c).take();
    try {
      group->begin(*this);
    } catch (...) {
      ended(std::current_exception());  // no other code completes the node
    }
  }
  void work(comm::Peers& peers) override {
    try {
      work_.run(values_, peers, collective_);
    } catch (...) {
      // Pending work must not touch this step's memory.
      if (!peers.failure().empty()) collective_ = comm::Collective();
      throw;
    }
  }
  void ended(std::exception_ptr error) noexcept override {
    Completion completion = std::move(completion_);
    error ? completion.fail(std::move(error)) : completion.done();
  }

 private:
  comm::FoundRing ring_;
  Work work_;
  KernelContext values_;
  comm::Collective collective_;
  Completion completion_;
};

// A Work has check(context, group), which runs in the executor's thread and rejects invalid arguments before any
// exchange, and run(context, peers, collective), which runs in the group's thread.
template <class Work> Kernel together(int ring, Work work) {
  auto node = std::make_shared<Together<Work>>(ring, std::move(work));
  return [node](KernelContext& c) { node->begin(c); };
}

}  // namespace anabranch::distributed
