// One-hot rows: one_hot, one_hot_v2.
#include "opdef/device_status.h"
#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::tensor::one_hot_op {
namespace {

OpDef& one_hot_attrs(OpDef& def) {
  return def.in("X", "int32 or int64 classes")
      .in_optional("depth_tensor", "[1] int: replaces depth")
      .shape_from("depth_tensor")
      .out("Out", "[..., depth]")
      .attr<int32_t>("depth", -1, "number of classes")
      .attr<int32_t>("dtype", 5, "id of the dtype of Out")
      .attr<bool>("allow_out_of_range", false, "a class out of range gives a row of zeros instead of an error");
}

void infer_one_hot(InferContext& c, bool last_is_one) {
  const int64_t depth = scalar_or(c, "depth_tensor", c.attr<int32_t>("depth"));
  AB_CHECK(depth >= 1 || (c.has_in("depth_tensor") && !c.runtime()), InvalidArgument,
           "depth must be at least 1, got {}", depth);
  Shape out = c.in("X").shape;
  if (last_is_one) {
    AB_CHECK(out.rank() >= 2 && (out[out.rank() - 1] == 1 || out[out.rank() - 1] == kUnknown), ShapeMismatch,
             "the last extent of X must be 1, got {}", out.str());
    out = out.slice(0, out.rank() - 1);
  }
  out.push_back(depth);
  c.set_out("Out", out, dtype_from_number(c.attr<int32_t>("dtype")));
  c.share_lod("Out", "X");
}

template <class Id, class T> void one_hot(const KernelContext& c, const Tensor& x, Tensor* out, bool allow) {
  const int64_t depth = out->shape()[out->shape().rank() - 1];
  const Id* ids = x.data<Id>();
  T* to = out->mutable_data<T>();
  c.parallel_for(x.numel(), std::max<int64_t>(1, kCheapGrain / depth), [=](int64_t begin, int64_t end) {
    std::fill(to + begin * depth, to + end * depth, T(0));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = ids[i];
      const bool inside = id >= 0 && id < depth;
      AB_CHECK(inside || allow, InvalidArgument, "the class at position {} must be 0 to {}, got {}", i, depth - 1, id);
      if (inside) to[i * depth + id] = T(1);
    }
  });
}

void declare_one_hot(const char* type, const char* doc, bool last_is_one) {
  OpDef& def = one_hot_attrs(declare_op(type, __FILE__)).doc(doc).no_grad(kNotDifferentiable).dtype_of_input("X");
  def.infer([last_is_one](InferContext& c) { infer_one_hot(c, last_is_one); });
  def.device<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    using Id = T;
    return visit_dtype(dtype_from_number(op.attr<int32_t>("dtype")), [&](auto to) -> Kernel {
      const std::string stem = std::string("one_hot/") + device::type_name<Id>;
      return
          [kernel = device::kernel_of<typename decltype(to)::type>(stem), allow = op.attr<bool>("allow_out_of_range"),
           x = op.in("X"), out = op.out("Out")](const DeviceContext& c) {
            const int64_t depth = c[out].shape()[c[out].shape().rank() - 1];
            c.launch(kernel, device::OneHotArgs{device::operand(c[x]), device::operand(c[out]), device::fault_of(c),
                                                c[x].numel(), depth, allow, 0});
          };
    });
  });
  def.with(device_fault(1, "the class at position {} must be at least 0 and below depth (<X>)"));
  def.cpu<int32_t, int64_t>([]<class Id>(TypeTag<Id>, const KernelArgs& op) -> Kernel {
    return visit_dtype(dtype_from_number(op.attr<int32_t>("dtype")), [&](auto to_tag) -> Kernel {
      using T = typename decltype(to_tag)::type;
      return [allow = op.attr<bool>("allow_out_of_range"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        one_hot<Id, T>(c, c[x], &c[out], allow);
      };
    });
  });
}

void declare_both() {
  declare_one_hot("one_hot", "Out = rows of zeros with a 1 at the class; X's last axis of extent 1 is replaced.", true);
  declare_one_hot("one_hot_v2", "Out = rows of zeros with a 1 at the class, along a new last axis.", false);
}

AB_OPS(declare_both);

}  // namespace
}  // namespace anabranch::tensor::one_hot_op
