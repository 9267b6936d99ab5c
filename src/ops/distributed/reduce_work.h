// Reductions of one value over all processes, for ops of programs and of the engine.
#pragma once
#include "ops/distributed/together.h"

namespace anabranch::distributed {

inline comm::Chunk chunk_of(Tensor& t) { return {t.mutable_raw(), t.numel()}; }
// Read only, if the other side of the exchange writes it.
inline comm::Chunk chunk_of(const Tensor& t) { return {const_cast<void*>(t.raw()), t.numel()}; }

inline comm::What about(comm::CollectiveKind verb, const Tensor& t, const std::string& name) {
  comm::What what(verb, t.dtype(), name);
  what.add(t.shape());
  return what;
}

// Reduces a tensor, or concatenates the sparse rows, of all processes in rank order. The readers of sparse rows add up
// equal ids.
struct ReduceWork {
  In x;
  Out out;
  comm::Combine how;
  std::string name;
  std::shared_ptr<SelectedRows> joined = std::make_shared<SelectedRows>();

  void check(const KernelContext& c, const comm::Group& group) const;
  void run(const KernelContext& c, comm::Peers& peers, comm::Collective& collective);
  void join(const KernelContext& c, comm::Peers& peers, comm::Collective& collective);
};

}  // namespace anabranch::distributed
