#include "ops/distributed/on_devices.h"

#include "base/flags.h"

namespace anabranch::distributed {
namespace {

using comm::CollectiveKind;
using comm::Combine;

ab_collective collective_of(const OnDevices::Kind& kind) {
  static constexpr ab_collective kReductions[] = {AB_ALL_REDUCE_SUM, AB_ALL_REDUCE_PROD, AB_ALL_REDUCE_MAX,
                                                  AB_ALL_REDUCE_MIN};  // by Combine
  switch (kind.verb) {
    case CollectiveKind::kBroadcast: return AB_BROADCAST;
    case CollectiveKind::kAllGather: return AB_ALL_GATHER;
    case CollectiveKind::kReduceScatter: return AB_REDUCE_SCATTER;
    default: return kReductions[static_cast<int>(kind.how)];
  }
}

}  // namespace

void communicator_attr(OpDef& def) {
  def.attr<int32_t>("communicator", 0, "index of the ring's communicator, for device collectives");
}

void check_ranks(int nranks, const comm::Group& group) {
  AB_CHECK(nranks == group.size(), InvalidArgument, "nranks must be the number of processes ({}), got {}", group.size(),
           nranks);
}

void check_root(int root, const comm::Group& group) {
  AB_CHECK(root < group.size(), InvalidArgument, "root must be below the number of processes ({}), got {}",
           group.size(), root);
}

OnDevices::OnDevices(const KernelArgs& op, const Kind& kind)
    : x_(op.in("X")),
      out_(op.out("Out")),
      kind_(kind),
      name_(op.op().input("X").at(0)),
      waits_(std::get<bool>(get_flag("FLAGS_sync_nccl_allreduce"))),
      ring_(std::make_shared<comm::DeviceRing>(
          kind.ring, op.op().has_attr("communicator") ? op.attr<int32_t>("communicator") : 0)),
      calls_(static_cast<size_t>(x_.count)) {
  for (auto& call : calls_) call.parts.resize(1);
}

comm::What OnDevices::about(const KernelContext& c) const {
  comm::What what(kind_.verb, c.at(x_, 0).dtype(), name_);
  what.how = kind_.how;
  what.root = kind_.root;
  for (int i = 0; i < x_.count; ++i) what.add(c.at(x_, i).shape());
  return what;
}

void OnDevices::call(const KernelContext& c, int i, device::Communicator::Call* call) const {
  const Tensor& x = c.at(x_, i);
  Tensor& out = c.at(out_, i);
  call->what = collective_of(kind_);
  call->dtype = static_cast<int>(x.dtype());
  const Tensor& part = kind_.verb == CollectiveKind::kReduceScatter ? static_cast<const Tensor&>(out) : x;
  call->count = static_cast<size_t>(part.numel());
  call->bytes = part.bytes();
  call->root = kind_.root;
  call->parts[0] = {x.raw(), out.mutable_raw()};
}

void OnDevices::run(KernelContext& c) {
  const MeetingContext& queued = MeetingContext::of(c);
  comm::Group& group = ring_->group();
  if (kind_.ranks > 0) check_ranks(kind_.ranks, group);
  check_root(kind_.root, group);
  const comm::What what = about(c);
  ring_->agree(what, queued.device());
  size_t calls = 0;
  for (int i = 0; i < x_.count; ++i) {
    if (c.at(x_, i).numel() > 0) call(c, i, &calls_[calls++]);
  }
  if (calls == 0) return;
  queued.look_at(*ring_);
  ring_->run(queued.queue(), {calls_.data(), calls});
  if (waits_) ring_->wait();
}

Kernel on_devices(const KernelArgs& op, const OnDevices::Kind& kind) {
  const auto node = std::make_shared<OnDevices>(op, kind);
  return [node](KernelContext& c) { node->run(c); };
}

}  // namespace anabranch::distributed
