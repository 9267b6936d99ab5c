// Receives variables, mostly parameters, from the servers that store them.
#include <algorithm>
#include <cstring>

#include "ops/distributed/shards.h"
#include "ps/exchanger.h"

namespace anabranch::distributed::recv_op {
namespace {

struct Parcels {
  std::shared_ptr<Shards> shards;
  std::vector<uint64_t> seen;  // numbers of the last answers, by slice
  std::vector<Tensor> parts;   // slices of an output that several servers hold
};

// A received value must have the shape of its variable if that has one.
void check_form(const Tensor& out, const rpc::Message& m, int part, const std::string& name) {
  const Shape shape = m.shape(part);
  const auto dtype = static_cast<DType>(m.part(part).dtype);
  AB_CHECK(!out.initialized() || (out.shape() == shape && out.dtype() == dtype), ShapeMismatch,
           "recv: {} must have the dtype and shape of its variable, {} {}, got {} {} from its server", name,
           dtype_name(out.dtype()), out.shape().str(), dtype_name(dtype), shape.str());
}

void join(const std::vector<Tensor>& parts, Tensor* out) {
  Shape shape = parts[0].shape();
  int64_t rows = 0;
  for (const Tensor& p : parts) rows += p.rows();
  shape.set(0, rows);
  out->resize(shape, parts[0].dtype());
  auto* to = static_cast<char*>(out->mutable_raw());
  for (const Tensor& p : parts) {
    AB_CHECK(p.row_elems() == parts[0].row_elems() && p.dtype() == parts[0].dtype(), ShapeMismatch,
             "recv: the slices of a variable must have rows of one width, got {} and {}", parts[0].row_elems(),
             p.row_elems());
    if (p.bytes()) std::memcpy(to, p.raw(), p.bytes());
    to += p.bytes();
  }
}

using Taken = ps::Exchanger::Taken;
Taken take(ps::Client& client, const ps::Remote& from, bool in_step, uint64_t* seen, Tensor* to) {
  if (in_step) return client.exchanger(from).take(from, seen, to);
  return client.take(from, to, seen) ? Taken::kNew : Taken::kUnknown;
}

// A step takes its values from the exchanger, and a startup program from the last answers. Missing values are
// requested.
Kernel recv_kernel(const KernelArgs& op) {
  const Out out = op.out("Out");
  const auto& endpoints = op.attr<std::vector<std::string>>("epmap");
  auto names = names_or(op, "recv_varnames", names_or(op, "varnames", op.op().output("Out")));
  const bool joins = out.count == 1 && endpoints.size() > 1;
  const bool in_step = !op.op().input("X").empty();
  auto p = std::make_shared<Parcels>();
  p->shards = std::make_shared<Shards>(op.attr<int32_t>("trainer_id"), endpoints, names, parameter_of(op));
  p->seen.resize(endpoints.size());
  if (joins) p->parts.resize(endpoints.size());
  const bool idle = op.attr<int32_t>("do_not_run") != 0;
  return [=](KernelContext& c) {
    if (idle) return;
    ps::Client& client = p->shards->client();
    Value* const* outs = c.outs + out.first;
    const auto target = [=](size_t i) { return joins ? &p->parts[i] : &outs[i]->as<Tensor>(); };
    if (in_step) p->shards->subscribe();
    std::vector<size_t> missing;  // not in the last answers, as in the first step, which subscribed after its exchange
    bool fresh = false;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto taken = take(client, p->shards->remotes()[i], in_step, &p->seen[i], target(i));
      fresh |= taken == Taken::kNew;
      if (taken == Taken::kUnknown) missing.push_back(i);
    }
    for (size_t i = 0; joins && fresh && i < names.size(); ++i) {  // another server has answered first
      if (p->seen[i] == 0 && std::find(missing.begin(), missing.end(), i) == missing.end()) missing.push_back(i);
    }
    if (!fresh && missing.empty()) return;  // no round has ended since the last step
    const auto finish = [=] {
      if (joins) join(p->parts, &outs[0]->as<Tensor>());
    };
    if (missing.empty()) return finish();
    const auto answers =
        std::make_shared<Answers>(static_cast<int>(missing.size()), AsyncContext::of(c).take(), finish);
    for (const size_t i : missing) {
      client.pull(p->shards->remotes()[i], [=](const rpc::MessageRef& answer) {
        answers->take(answer, [&](const rpc::Message& m) {
          AB_CHECK(m.parts() == 1, Internal, "recv: the server's answer must hold one variable, got {}", m.parts());
          check_form(*target(i), m, 0, names[i]);
          ps::copy_part(m, 0, target(i));
        });
      });
    }
  };
}

AB_OP(recv)
    .doc("Out[i] = the variable varnames[i] of the server epmap[i].")
    .in_list("X", "not read; orders this op after the ops that write it")
    .takes("X", Holds::kAnything)
    .out_list("Out", "tensors")
    .attr<std::vector<std::string>>("epmap", {}, "server of each variable")
    .attr<int32_t>("trainer_id", 0, "id of this worker")
    .attr<bool>("with_barrier", true, "waits until the servers have updated the variables")
    .attr<std::vector<std::string>>("varnames", {}, "name of each variable on its server")
    .attr<std::vector<std::string>>("recv_varnames", {}, "names of the slices of Out on the servers")
    .attr<int32_t>("do_not_run", 0, "1: the communicator receives and this op does nothing")
    .effects(kTalks | kAsynchronous)
    .traits(kSameForms | kReceives)
    .infer(keep_declared)
    .no_grad("moves values between processes")
    .cpu_any(recv_kernel);

}  // namespace
}  // namespace anabranch::distributed::recv_op
