// Rings of processes, set up by the startup program before any collective.
#include <fmt/format.h>

#include <cstring>

#include "ops/declare/attr_checks.h"
#include "ops/distributed/declare.h"
#include "rendezvous/join.h"

namespace anabranch::distributed {
namespace {

constexpr const char* kSetUp = "connects processes";

// The name of a ring is the list of its addresses by rank, so no process needs to request it.
void set_name(Value& out, const std::vector<std::string>& endpoints) {
  const std::string text = fmt::format("{}", fmt::join(endpoints, ","));
  Tensor& to = out.as<Tensor>();
  to.resize(Shape{static_cast<int64_t>(text.size())}, DType::kUInt8);
  std::memcpy(to.mutable_raw(), text.data(), text.size());
}

std::vector<std::string> members(const Value& name) {
  const Tensor* t = name.get<Tensor>();
  AB_CHECK(t && t->initialized() && t->dtype() == DType::kUInt8, InvalidArgument,
           "X must be the name of a ring, made by c_gen_nccl_id");
  std::vector<std::string> out{""};
  for (const char *p = static_cast<const char*>(t->raw()), *end = p + t->numel(); p < end; ++p) {
    if (*p == ',') {
      out.emplace_back();
    } else {
      out.back() += *p;
    }
  }
  return out;
}

Kernel name_kernel(const KernelArgs& op) {
  auto endpoints = op.attr<std::vector<std::string>>("other_endpoints");
  const int rank = op.attr<int32_t>("rank");
  AB_CHECK(rank >= 0 && static_cast<size_t>(rank) <= endpoints.size(), InvalidArgument,
           "rank must be from 0 to {}, the number of other_endpoints, got {}", endpoints.size(), rank);
  endpoints.insert(endpoints.begin() + rank, op.attr<std::string>("endpoint"));
  return [=, out = op.out("Out")](KernelContext& c) { set_name(c.value(out), endpoints); };
}

Kernel join_kernel(const KernelArgs& op) {
  const int nranks = op.attr<int32_t>("nranks"), rank = op.attr<int32_t>("rank"), ring = op.attr<int32_t>("ring_id");
  return [=, x = op.in("X")](KernelContext& c) {
    const auto endpoints = members(c.value(x));
    AB_CHECK(static_cast<size_t>(nranks) == endpoints.size(), InvalidArgument,
             "nranks must be the number of processes of the ring ({}), got {}", endpoints.size(), nranks);
    rendezvous::join_ring({.ring = ring, .rank = rank, .endpoints = endpoints});
  };
}

// For older programs: this op both names the rings and joins them.
Kernel trainers_kernel(const KernelArgs& op) {
  auto endpoints = op.attr<std::vector<std::string>>("trainers");
  const int trainer = op.attr<int32_t>("trainer_id"), rings = op.attr<int32_t>("nccl_comm_num");
  if (endpoints.empty()) {
    endpoints = op.attr<std::vector<std::string>>("endpoint_list");
    AB_CHECK(static_cast<size_t>(trainer) <= endpoints.size(), InvalidArgument,
             "trainer_id must be from 0 to {}, the length of endpoint_list, got {}", endpoints.size(), trainer);
    endpoints.insert(endpoints.begin() + trainer, op.attr<std::string>("endpoint"));
  }
  return [=, out = op.out("NCCLID")](KernelContext& c) {
    for (int ring = 0; ring < rings; ++ring) {
      rendezvous::join_ring({.ring = ring, .rank = trainer, .endpoints = endpoints});
    }
    set_name(c.value(out), endpoints);
  };
}

// Each process has one device here.
Kernel alone_kernel(const KernelArgs& op) {
  const int ring = op.attr<int32_t>("ring_id");
  return [=](KernelContext&) { rendezvous::join_ring({.ring = ring, .rank = 0, .endpoints = {"this process:0"}}); };
}

AB_OP(c_gen_nccl_id)
    .doc("Out = the name of a ring, made by the first process and sent to the others.")
    .out("Out", "raw")
    .attr<int32_t>("rank", 0, "rank of this process", at_least<int32_t>("rank", 0))
    .attr<std::string>("endpoint", "", "address of this process")
    .attr<std::vector<std::string>>("other_endpoints", {}, "addresses of the others")
    .attr<int32_t>("ring_id", 0, "id of the ring", at_least<int32_t>("ring_id", 0))
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad(kSetUp)
    .cpu_any(name_kernel);

AB_OP(gen_nccl_id)
    .doc("NCCLID = the name of the ring of all workers, made by the first and sent to the others.")
    .out("NCCLID", "raw")
    .attr<std::string>("endpoint", "", "address of this worker")
    .attr<std::vector<std::string>>("endpoint_list", {}, "addresses of the other workers, in older programs")
    .attr<std::vector<std::string>>("trainers", {}, "addresses of all workers")
    .attr<int32_t>("trainer_id", 0, "id of this worker", at_least<int32_t>("trainer_id", 0))
    .attr<int32_t>("nccl_comm_num", 1, "rings", at_least<int32_t>("nccl_comm_num", 1))
    .attr<bool>("use_hierarchical_allreduce", false, "sums within each machine first")
    .attr<int32_t>("hierarchical_allreduce_inter_nranks", 1, "number of workers per machine")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad(kSetUp)
    .cpu_any(trainers_kernel);

AB_OP(c_comm_init)
    .doc("Joins the ring whose name is X.")
    .in("X", "raw, the name of the ring")
    .takes("X", Holds::kAnything)
    .required_attr("nranks", AttrType::kInt, "number of processes in the ring")
    .required_attr("rank", AttrType::kInt, "rank of this process")
    .required_attr("ring_id", AttrType::kInt, "id of the ring")
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad(kSetUp)
    .cpu_any(join_kernel);

AB_OP(c_comm_init_all)
    .doc("Joins the devices of this process into one ring.")
    .attr<std::vector<int32_t>>("devices", {}, "ids of the devices; empty: all")
    .attr<int32_t>("ring_id", 0, "id of the ring", at_least<int32_t>("ring_id", 0))
    .effects(kTalks)
    .infer(keep_declared)
    .no_grad(kSetUp)
    .cpu_any(alone_kernel);

}  // namespace
}  // namespace anabranch::distributed
