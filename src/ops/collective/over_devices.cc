#include "ops/collective/over_devices.h"

#include <algorithm>

#include "base/flags.h"

namespace anabranch::collective {

using Call = device::Communicator::Call;

void over_devices_attrs(OpDef& def) {
  def.attr<std::vector<int32_t>>("devices", {},
                                 "devices of the replicas when each replica has its own device; otherwise empty")
      .attr<int32_t>("communicator", 0, "index of the communicator of these devices");
}

OverDevices::OverDevices(const KernelArgs& op)
    : x_(op.in("X")),
      out_(op.out("Out")),
      groups_(op.attr<int32_t>("groups")),
      number_(op.attr<int32_t>("communicator")),
      waits_(std::get<bool>(get_flag("FLAGS_sync_nccl_allreduce"))) {
  const auto ids = op.attr<std::vector<int32_t>>("devices");
  devices_.assign(ids.begin(), ids.end());
  calls_.resize(static_cast<size_t>(groups_));
  for (Call& call : calls_) call.parts.resize(devices_.size());
}

GradientSlots OverDevices::group(int k) const {
  const int per_in = x_.count / groups_, per_out = out_.count / groups_;
  return {{x_.first + k * per_in, per_in}, {out_.first + k * per_out, per_out}};
}

int OverDevices::rank_of(const Tensor& t) const {
  const auto at = std::find(devices_.begin(), devices_.end(), int{t.place().id});
  AB_CHECK(at != devices_.end() && !t.place().on_host(), Internal,
           "a value is on {}, which must be one of the replicas' devices", t.place().str());
  return static_cast<int>(at - devices_.begin());
}

void OverDevices::run(const DeviceContext& c) {
  if (!communicator_ || !communicator_->works()) communicator_ = device::Communicator::of(devices_, number_);
  communicator_->run(c.queue(), c.device(), calls_);
  if (waits_) communicator_->wait();
}

void OverDevices::sum(const DeviceContext& c) {
  for (int k = 0; k < groups_; ++k) {
    const GradientSlots g = group(k);
    Call& call = calls_[static_cast<size_t>(k)];
    std::fill(call.parts.begin(), call.parts.end(), device::Communicator::Part());
    const Tensor& first = c.at(g.in, 0);
    call.dtype = static_cast<int>(first.dtype());
    call.count = static_cast<size_t>(first.numel());
    call.bytes = first.bytes();
    for (int r = 0; r < g.in.count; ++r) {
      const Tensor& t = c.at(g.in, r);
      call.parts[static_cast<size_t>(rank_of(t))].send = t.raw();
    }
    for (int r = 0; r < g.out.count; ++r) {
      Tensor& t = c.at(g.out, r);
      call.parts[static_cast<size_t>(rank_of(t))].recv = t.mutable_raw();
    }
    const bool all = g.out.count == static_cast<int>(devices_.size());
    AB_CHECK(all || g.out.count == 1, Internal, "a sum over {} devices must have one output or one per device, got {}",
             devices_.size(), g.out.count);
    call.what = all ? AB_ALL_REDUCE_SUM : AB_REDUCE_SUM;
    call.root = all ? 0 : rank_of(c.at(g.out, 0));
  }
  run(c);
}

void OverDevices::broadcast(const DeviceContext& c) {
  for (int k = 0; k < groups_; ++k) {
    const GradientSlots g = group(k);
    Call& call = calls_[static_cast<size_t>(k)];
    const Tensor& from = c.at(g.in, 0);
    call.what = AB_BROADCAST;
    call.dtype = static_cast<int>(from.dtype());
    call.count = static_cast<size_t>(from.numel());
    call.bytes = from.bytes();
    call.root = rank_of(from);
    AB_CHECK(g.out.count == static_cast<int>(devices_.size()), Internal,
             "a broadcast to {} devices must have one output per device, got {}", devices_.size(), g.out.count);
    for (int r = 0; r < g.out.count; ++r) {
      Tensor& t = c.at(g.out, r);
      call.parts[static_cast<size_t>(rank_of(t))] = {rank_of(t) == call.root ? from.raw() : nullptr, t.mutable_raw()};
    }
  }
  run(c);
}

}  // namespace anabranch::collective
