// What processes compute together: sums, copies and lists over all of them. ring_id names a group of processes.
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/distributed/not_here.h"

namespace anabranch::distributed {
namespace {

void in_ring(OpDef& def) {
  def.attr<int32_t>("ring_id", 0, "the group of processes", at_least<int32_t>("ring_id", 0))
      .ignores("use_calc_stream", false);
}

void declare_reduce(const char* type, const char* doc) {
  declare_op(type, __FILE__)
      .doc(doc)
      .in("X", "[...], of one shape in all processes, or sparse rows")
      .takes("X", Holds::kTensorOrRows)
      .out("Out", "as X")
      .with(in_ring)
      .effects(kOrdered)
      .infer([](InferContext& c) { c.same_as("Out", "X"); })
      .no_grad("used on gradients")
      .cpu_any(not_here(kSumsOfProcesses));
}

void reductions() {
  declare_reduce("c_allreduce_sum", "Out = the sum of X over all processes of the ring.");
  declare_reduce("c_allreduce_max", "Out = the largest of X over all processes of the ring, elementwise.");
  declare_reduce("c_allreduce_min", "Out = the smallest of X over all processes of the ring, elementwise.");
  declare_reduce("c_allreduce_prod", "Out = the product of X over all processes of the ring.");
}
AB_OPS(reductions);

AB_OP(c_broadcast)
    .doc("Out = X of the process `root` of the ring.")
    .in("X", "[...], of one shape in all processes")
    .out("Out", "as X")
    .attr<int32_t>("root", 0, "number of the process", at_least<int32_t>("root", 0))
    .with(in_ring)
    .effects(kOrdered)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("used on parameters")
    .cpu_any(not_here(kSumsOfProcesses));

AB_OP(c_allgather)
    .doc("Out = the X of all processes of the ring, one behind the other.")
    .in("X", "[rows, ...], of one shape in all processes")
    .out("Out", "[nranks rows, ...]")
    .required_attr("nranks", AttrType::kInt, "processes in the ring")
    .with(in_ring)
    .effects(kOrdered)
    .infer([](InferContext& c) {
      check_rank(c, "X", 1, kMaxRank);
      const int32_t n = c.attr<int32_t>("nranks");
      AB_CHECK(n >= 1, InvalidArgument, "nranks must be at least 1, got {}", n);
      Shape shape = c.in("X").shape;
      if (shape[0] >= 0) shape.set(0, shape[0] * n);
      c.set_out("Out", shape, c.in("X").dtype);
    })
    .no_grad("used on gradients")
    .cpu_any(not_here(kSumsOfProcesses));

AB_OP(c_reducescatter)
    .doc("Out = this process's part of the rows of the sum of X over all processes of the ring.")
    .in("X", "[nranks rows, ...], of one shape in all processes")
    .out("Out", "[rows, ...]")
    .attr<int32_t>("nranks", 1, "processes in the ring", at_least<int32_t>("nranks", 1))
    .with(in_ring)
    .effects(kOrdered)
    .infer([](InferContext& c) {
      check_rank(c, "X", 1, kMaxRank);
      const int32_t n = c.attr<int32_t>("nranks");
      Shape shape = c.in("X").shape;
      AB_CHECK(shape[0] < 0 || shape[0] % n == 0, ShapeMismatch, "the rows of X must be cut evenly by {}, got X {}", n,
               shape.str());
      if (shape[0] >= 0) shape.set(0, shape[0] / n);
      c.set_out("Out", shape, c.in("X").dtype);
    })
    .no_grad("used on gradients")
    .cpu_any(not_here(kSumsOfProcesses));

// ---- those of programs before there were rings

AB_OP(allreduce)
    .doc("Out = the sum (0), product (1), largest (2) or smallest (3) of X over all processes.")
    .in("X", "[...], of one shape in all processes")
    .out("Out", "as X")
    .attr<int32_t>("reduce_type", 0, "what is made of X, by number", within<int32_t>("reduce_type", 0, 3))
    .ignores("sync_mode", false)
    .effects(kOrdered)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("used on gradients")
    .cpu_any(not_here(kSumsOfProcesses));

AB_OP(broadcast)
    .doc("Out = X of the process `root`.")
    .in("X", "[...], of one shape in all processes")
    .out("Out", "as X")
    .attr<int32_t>("root", 0, "number of the process", at_least<int32_t>("root", 0))
    .ignores("sync_mode", false)
    .effects(kOrdered)
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("used on parameters")
    .cpu_any(not_here(kSumsOfProcesses));

}  // namespace
}  // namespace anabranch::distributed
