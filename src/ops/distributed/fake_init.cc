// A parameter that servers hold: the worker declares it without values.
#include "ops/declare/declare.h"

namespace anabranch::distributed::fake_init_op {
namespace {

AB_OP(fake_init)
    .doc("Out has a shape but no values, which exist only on servers.")
    .out("Out", "[shape]")
    .required_attr("shape", AttrType::kLongs, "shape of the whole variable")
    .effects(kDynamic | kKeepsOutputs)
    .infer([](InferContext& c) {
      Shape shape;
      for (const int64_t extent : c.attr<std::vector<int64_t>>("shape")) {
        AB_CHECK(extent >= 0, InvalidArgument, "shape must not be negative, got {}", extent);
        AB_CHECK(shape.rank() < kMaxRank, InvalidArgument, "shape must have at most {} axes", kMaxRank);
        shape.push_back(extent);
      }
      c.out("Out").shape = c.runtime() ? Shape{0} : shape;  // releases the memory planned before the kernel
    })
    .no_grad("has no input")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const Shape shape(op.attr<std::vector<int64_t>>("shape"));
      return [=, out = op.out("Out")](KernelContext& c) {
        c.value(out).clear();
        c[out].view(nullptr, shape, DType::kFloat32, nullptr);  // a shape without memory
      };
    });

AB_OP(ref_by_trainer_id)
    .doc("Out = X[TrainerId].")
    .in_list("X", "one per worker, all of one shape and dtype")
    .in("TrainerId", "[1] int64, id of the worker")
    .out("Out", "like the selected X, without LoD")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      check_dtype(c, "TrainerId", DType::kInt64);
      check_numel(c, "TrainerId", 1);
      if (!c.runtime()) c.same_as("Out", "X");
    })
    .no_grad("applies to gradients")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), trainer = op.in("TrainerId");
      const Out out = op.out("Out");
      return [=](KernelContext& c) {
        const int64_t k = *c[trainer].data<int64_t>();
        AB_CHECK(k >= 0 && k < x.count, InvalidArgument, "TrainerId must be below the number of inputs X, got {} of {}",
                 k, x.count);
        c.value(out).copy_from(c.value(x, static_cast<int>(k)));
        if (c.value(out).is<Tensor>()) c[out].set_lod(nullptr);
      };
    });

}  // namespace
}  // namespace anabranch::distributed::fake_init_op
