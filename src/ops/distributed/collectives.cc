// Collectives over processes: sums, copies and concatenations. ring_id names a group of processes.
#include <cstring>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/distributed/on_devices.h"
#include "ops/distributed/reduce_work.h"

namespace anabranch::distributed::collectives_op {
namespace {

using comm::Chunk;
using comm::Collective;
using comm::CollectiveKind;
using comm::Combine;
using comm::Peers;
using comm::What;

struct BroadcastWork {
  In x;
  Out out;
  int root;
  std::string name;

  void check(const KernelContext&, const comm::Group& group) const { check_root(root, group); }
  void run(const KernelContext& c, Peers& peers, Collective& collective) const {
    const Tensor& in = c[x];
    Tensor& to = c[out];
    if (in.raw() != to.raw() && in.bytes() > 0) std::memcpy(to.mutable_raw(), in.raw(), in.bytes());
    collective.broadcast(peers, about(CollectiveKind::kBroadcast, in, name), root, chunk_of(to));
  }
};

struct GatherWork {
  In x;
  Out out;
  int nranks;
  std::string name;

  void check(const KernelContext&, const comm::Group& group) const { check_ranks(nranks, group); }
  void run(const KernelContext& c, Peers& peers, Collective& collective) const {
    collective.all_gather(peers, about(CollectiveKind::kAllGather, c[x], name), chunk_of(c[x]), chunk_of(c[out]));
  }
};

struct ScatterWork {
  In x;
  Out out;
  int nranks;
  std::string name;

  void check(const KernelContext& c, const comm::Group& group) const {
    check_ranks(nranks, group);
    comm::check_combines(Combine::kSum, c[x].dtype());
  }
  void run(const KernelContext& c, Peers& peers, Collective& collective) const {
    collective.reduce_scatter(peers, about(CollectiveKind::kReduceScatter, c[x], name), Combine::kSum, chunk_of(c[x]),
                              chunk_of(c[out]));
  }
};

std::string name_of(const KernelArgs& op) { return op.op().input("X").at(0); }
int ring_of(const KernelArgs& op) { return op.op().has_attr("ring_id") ? op.attr<int32_t>("ring_id") : 0; }

KernelFactory reduce_kernel(Combine how) {
  return [how](const KernelArgs& op) {
    return together(ring_of(op), ReduceWork{op.in("X"), op.out("Out"), how, name_of(op)});
  };
}

Kernel broadcast_kernel(const KernelArgs& op) {
  return together(ring_of(op), BroadcastWork{op.in("X"), op.out("Out"), op.attr<int32_t>("root"), name_of(op)});
}

// Dtypes that device collectives compute with.
template <class Kind> auto on_numbers(Kind kind) {
  return [kind](OpDef& def) {
    def.device<float, double, int32_t, int64_t, float16, bfloat16>(
        [kind](auto, const KernelArgs& op) { return on_devices(op, kind(op)); });
  };
}

OnDevices::Kind broadcast_kind(const KernelArgs& op) {
  return {.ring = ring_of(op), .verb = CollectiveKind::kBroadcast, .root = op.attr<int32_t>("root")};
}

void in_ring(OpDef& def) {
  def.attr<int32_t>("ring_id", 0, "id of the ring", at_least<int32_t>("ring_id", 0)).ignores("use_calc_stream", false);
}

void declare_reduce(const char* type, const char* doc, Combine how) {
  declare_op(type, __FILE__)
      .doc(doc)
      .in("X", "[...], of one shape in all processes, or sparse rows")
      .takes("X", Holds::kTensorOrRows)
      .out("Out", "like X")
      .with(in_ring)
      .effects(kOrdered | kAsynchronous)
      .infer([](InferContext& c) { c.same_as("Out", "X"); })
      .may_share("X", "Out")
      .no_grad("applies to gradients")
      .cpu_any(reduce_kernel(how))
      .with(on_numbers([how](const KernelArgs& op) { return OnDevices::Kind{.ring = ring_of(op), .how = how}; }));
}

void reductions() {
  declare_reduce("c_allreduce_sum", "Out = the sum of X over all processes of the ring.", Combine::kSum);
  declare_reduce("c_allreduce_max", "Out = the elementwise maximum of X over all processes of the ring.",
                 Combine::kMax);
  declare_reduce("c_allreduce_min", "Out = the elementwise minimum of X over all processes of the ring.",
                 Combine::kMin);
  declare_reduce("c_allreduce_prod", "Out = the product of X over all processes of the ring.", Combine::kProd);
}
AB_OPS(reductions);

AB_OP(c_broadcast)
    .doc("Out = X of the process `root` of the ring.")
    .in("X", "[...], of one shape in all processes")
    .out("Out", "like X")
    .attr<int32_t>("root", 0, "rank of the root", at_least<int32_t>("root", 0))
    .with(in_ring)
    .effects(kOrdered | kAsynchronous)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("applies to parameters")
    .cpu_any(broadcast_kernel)
    .with(on_numbers(broadcast_kind));

AB_OP(c_allgather)
    .doc("Out = the X of all processes of the ring, one after another.")
    .in("X", "[rows, ...], of one shape in all processes")
    .out("Out", "[nranks rows, ...]")
    .required_attr("nranks", AttrType::kInt, "number of processes in the ring")
    .with(in_ring)
    .effects(kOrdered | kAsynchronous)
    .infer([](InferContext& c) {
      check_rank(c, "X", 1, kMaxRank);
      const int32_t n = c.attr<int32_t>("nranks");
      AB_CHECK(n >= 1, InvalidArgument, "nranks must be at least 1, got {}", n);
      Shape shape = c.in("X").shape;
      if (shape[0] >= 0) shape.set(0, shape[0] * n);
      c.set_out("Out", shape, c.in("X").dtype);
    })
    .no_grad("applies to gradients")
    .cpu_any([](const KernelArgs& op) {
      return together(ring_of(op), GatherWork{op.in("X"), op.out("Out"), op.attr<int32_t>("nranks"), name_of(op)});
    })
    .with(on_numbers([](const KernelArgs& op) {
      return OnDevices::Kind{
          .ring = ring_of(op), .verb = CollectiveKind::kAllGather, .ranks = op.attr<int32_t>("nranks")};
    }));

AB_OP(c_reducescatter)
    .doc("Out = this process's slice of the rows of the sum of X over all processes of the ring.")
    .in("X", "[nranks rows, ...], of one shape in all processes")
    .out("Out", "[rows, ...]")
    .attr<int32_t>("nranks", 1, "number of processes in the ring", at_least<int32_t>("nranks", 1))
    .with(in_ring)
    .effects(kOrdered | kAsynchronous)
    .infer([](InferContext& c) {
      check_rank(c, "X", 1, kMaxRank);
      const int32_t n = c.attr<int32_t>("nranks");
      Shape shape = c.in("X").shape;
      AB_CHECK(shape[0] < 0 || shape[0] % n == 0, ShapeMismatch,
               "the number of rows of X must be divisible by nranks ({}), got X {}", n, shape.str());
      if (shape[0] >= 0) shape.set(0, shape[0] / n);
      c.set_out("Out", shape, c.in("X").dtype);
    })
    .no_grad("applies to gradients")
    .cpu_any([](const KernelArgs& op) {
      return together(ring_of(op), ScatterWork{op.in("X"), op.out("Out"), op.attr<int32_t>("nranks"), name_of(op)});
    })
    .with(on_numbers([](const KernelArgs& op) {
      return OnDevices::Kind{
          .ring = ring_of(op), .verb = CollectiveKind::kReduceScatter, .ranks = op.attr<int32_t>("nranks")};
    }));

// ---- ops of programs from before there were rings

AB_OP(allreduce)
    .doc("Out = the sum (0), product (1), maximum (2) or minimum (3) of X over all processes.")
    .in("X", "[...], of one shape in all processes")
    .out("Out", "like X")
    .attr<int32_t>("reduce_type", 0, "the reduction, by number", within<int32_t>("reduce_type", 0, 3))
    .ignores("sync_mode", false)
    .effects(kOrdered | kAsynchronous)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("applies to gradients")
    .cpu_any([](const KernelArgs& op) {
      return reduce_kernel(static_cast<Combine>(op.attr<int32_t>("reduce_type")))(op);
    })
    .with(on_numbers([](const KernelArgs& op) {
      return OnDevices::Kind{.ring = 0, .how = static_cast<Combine>(op.attr<int32_t>("reduce_type"))};
    }));

AB_OP(broadcast)
    .doc("Out = X of the process `root`.")
    .in("X", "[...], of one shape in all processes")
    .out("Out", "like X")
    .attr<int32_t>("root", 0, "rank of the root", at_least<int32_t>("root", 0))
    .ignores("sync_mode", false)
    .effects(kOrdered | kAsynchronous)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("applies to parameters")
    .cpu_any(broadcast_kernel)
    .with(on_numbers(broadcast_kind));

}  // namespace
}  // namespace anabranch::distributed::collectives_op
