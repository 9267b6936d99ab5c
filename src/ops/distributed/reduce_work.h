// What is made of one value of all processes, for the ops of programs and of the engine.
#pragma once
#include "ops/distributed/together.h"

namespace anabranch::distributed {

inline comm::Piece piece_of(Tensor& t) { return {t.mutable_raw(), t.numel()}; }
// Only read, where the other side of a meeting takes it.
inline comm::Piece piece_of(const Tensor& t) { return {const_cast<void*>(t.raw()), t.numel()}; }

inline comm::What about(comm::Verb verb, const Tensor& t, const std::string& name) {
  comm::What what(verb, t.dtype(), name);
  what.add(t.shape());
  return what;
}

// What is made of a tensor or of sparse rows of all processes. Rows are not added up but joined, in the order of ranks:
// what reads them adds up those of one number.
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
