#include "engine/ring_values.h"

#include <map>

namespace anabranch {

void share_first_values(const ir::Program& program, ReplicaValues& values, comm::Group& group) {
  std::map<std::string, std::shared_ptr<Value>> kept;
  for (const auto& var : program.global_block().vars()) {
    if (!var->persistable || var->kind != VarKind::kLoDTensor) continue;
    auto value = values.get(var->name, 0);
    if (value && value->is<Tensor>() && value->initialized()) kept.emplace(var->name, std::move(value));
  }
  // The network cannot access device memory.
  std::map<std::string, Tensor> on_host;
  for (const auto& [name, value] : kept) {
    const Tensor& t = value->tensor();
    if (!t.place().on_host()) on_host[name].copy_from(t, Place());
  }
  std::vector<Value*> written;
  group.call([&](comm::Peers& peers) {
    comm::Collective copies;
    for (const auto& [name, value] : kept) {
      const auto brought = on_host.find(name);
      Tensor& t = brought == on_host.end() ? value->as<Tensor>() : brought->second;
      comm::What what(comm::CollectiveKind::kBroadcast, t.dtype(), name);
      what.add(t.shape());
      copies.broadcast(peers, what, 0, {t.mutable_raw(), t.numel()});
    }
    copies.barrier(peers);  // a process with more of them disagrees here
  });
  for (const auto& [name, brought] : on_host) {
    Tensor& t = kept.at(name)->as<Tensor>();
    t.copy_from(brought, t.place());
  }
  for (const auto& [name, value] : kept) written.push_back(value.get());
  values.mark_written(written, true);
}

}  // namespace anabranch
