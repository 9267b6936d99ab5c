// Random tensors. Element i is number i of the op's draw: the same for any number of threads.
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_draw.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/philox.h"
#include "ops/tensor/random_functions.h"

namespace anabranch::tensor::random_op {
namespace {

DType dtype_attr(const ir::Op& op) { return dtype_from_number(op.attr<int32_t>("dtype")); }

void infer_random(InferContext& c) {
  const bool by_tensor = c.op().type == "uniform_random" || c.op().type == "gaussian_random";
  const std::vector<int64_t> attr = int_attr(c.op(), "shape");
  const IntArg shape = by_tensor ? int_arg(c, "ShapeTensor", "ShapeTensorList", attr, kUnknown) : IntArg{attr};
  for (int64_t extent : shape.values) {
    AB_CHECK(extent >= 0 || !c.runtime(), InvalidArgument, "an extent of shape must be at least 0, got {}", extent);
  }
  AB_CHECK(!shape.values.empty(), InvalidArgument, "shape must have at least one extent");
  c.set_out("Out", Shape(shape.values), dtype_attr(c.op()));
}

void infer_batch_size_like(InferContext& c) {
  const Meta& like = c.in("Input");
  Shape shape(int_attr(c.op(), "shape"));
  const int from = c.attr<int32_t>("input_dim_idx"), to = c.attr<int32_t>("output_dim_idx");
  AB_CHECK(from >= 0 && from < like.shape.rank() && to >= 0 && to < shape.rank(), InvalidArgument,
           "input_dim_idx and output_dim_idx must name axes of Input and shape, got {} and {} for {} and {}", from, to,
           like.shape.str(), shape.str());
  shape.set(to, like.shape[from]);
  AB_CHECK(shape.known() || !c.runtime(), InvalidArgument, "the extents of shape must be at least 0, got {}",
           shape.str());
  c.set_out("Out", shape, dtype_attr(c.op()));
}

// draw(rng, begin, end, out) writes elements [begin, end) to `out`.
template <class T, class Draw> Kernel random_kernel(const KernelArgs& op, Draw draw) {
  return [draw, key = op.random(), out = op.out("Out")](KernelContext& c) {
    const Philox rng(with_step(key, c));
    T* to = c[out].mutable_data<T>();
    c.parallel_for(c[out].numel(), kMathGrain, [&](int64_t begin, int64_t end) { draw(rng, begin, end, to + begin); });
  };
}

template <class Make> KernelFactory of_real_dtype(Make make) {
  return [make](const KernelArgs& op) -> Kernel {
    switch (dtype_attr(op.op())) {
      case DType::kFloat32: return make(TypeTag<float>{}, op);
      case DType::kFloat64: return make(TypeTag<double>{}, op);
      default: AB_THROW(Unsupported, "dtype must be float32 or float64, got {}", dtype_name(dtype_attr(op.op())));
    }
  };
}

template <class T> Kernel uniform(const KernelArgs& op) {
  const T lo = static_cast<T>(op.attr<float>("min")), hi = static_cast<T>(op.attr<float>("max"));
  AB_CHECK(lo <= hi, InvalidArgument, "min must not be above max, got {} and {}", lo, hi);
  Kernel draw = random_kernel<T>(op, [=](const Philox& rng, int64_t begin, int64_t end, T* to) {
    rng.each_uniform53(begin, end, [=](int64_t i, double u) { to[i - begin] = uniform_in(u, lo, hi); });
  });
  const int64_t count = op.attr<int32_t>("diag_num"), step = op.attr<int32_t>("diag_step");
  AB_CHECK(count == 0 || step >= 0, InvalidArgument, "diag_step must be at least 0, got {}", step);
  const T value = static_cast<T>(op.attr<float>("diag_val"));
  return [=, draw = std::move(draw), out = op.out("Out")](KernelContext& c) {
    draw(c);
    // Element i of a diagonal is step + 1 elements after element i - 1.
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = i * step + i;
      AB_CHECK(at < c[out].numel(), InvalidArgument, "a diagonal of {} elements with step {} must fit into shape {}",
               count, step, c[out].shape().str());
      c[out].mutable_data<T>()[at] = value;
    }
  };
}

template <class T> Kernel gaussian(const KernelArgs& op) {
  const double mean = static_cast<double>(op.attr<float>("mean")), std = static_cast<double>(op.attr<float>("std"));
  return random_kernel<T>(op, [=](const Philox& rng, int64_t begin, int64_t end, T* to) {
    rng.each_normal(begin, end, to, [=](int64_t, double z) { return static_cast<T>(mean + std * z); });
  });
}

// The normal distribution truncated at two standard deviations, by inversion.
template <class T> Kernel truncated(const KernelArgs& op) {
  const double mean = static_cast<double>(op.attr<float>("mean")), std = static_cast<double>(op.attr<float>("std"));
  const double tail = two_deviations_tail();
  return random_kernel<T>(op, [=](const Philox& rng, int64_t begin, int64_t end, T* to) {
    rng.each_uniform53(begin, end, [=](int64_t i, double u) {
      to[i - begin] = static_cast<T>(mean + std * truncated_normal(u, tail));
    });
  });
}

// The same on devices, with two attributes as parameters.
KernelFactory drawn_on_device(const char* distribution, const char* first, const char* second) {
  return of_real_dtype([=]<class T>(TypeTag<T>, const KernelArgs& op) {
    return device::draw<T>(op, distribution,
                           {static_cast<double>(op.attr<float>(first)), static_cast<double>(op.attr<float>(second))});
  });
}

OpDef& common_attrs(OpDef& def) {
  return def.attr<int32_t>("seed", 0, "seed of this op; 0: uses the seed of the program or the process")
      .attr<int32_t>("dtype", 5, "id of the dtype: float32 or float64")
      .effects(kRandom)
      .no_grad("random numbers");
}
// As in Fluid 1.8.5, only one of the two operators checks the step without a diagonal, too.
OpDef& uniform_attrs(OpDef& def, const std::function<void(const int32_t&)>& check_step) {
  def.attr<float>("min", -1.0f, "lower bound, inclusive").attr<float>("max", 1.0f, "upper bound, exclusive");
  def.attr<int32_t>("diag_num", 0, "number of diagonal elements set to diag_val", at_least("diag_num", 0));
  def.attr<int32_t>("diag_step", 0, "distance of these elements minus one", check_step)
      .attr<float>("diag_val", 1.0f, "value of these elements");
  return common_attrs(def)
      .cpu_any(of_real_dtype([]<class T>(TypeTag<T>, const KernelArgs& op) { return uniform<T>(op); }))
      .device_any([draw = drawn_on_device("uniform", "min", "max")](const KernelArgs& op) {
        const bool plain = op.attr<float>("min") <= op.attr<float>("max") && op.attr<int32_t>("diag_num") == 0;
        AB_CHECK(plain, Unsupported, "diagonals and invalid bounds are not supported on devices");
        return draw(op);
      });
}
OpDef& normal_attrs(OpDef& def) {
  return common_attrs(def).attr<float>("mean", 0.0f, "mean").attr<float>("std", 1.0f, "standard deviation");
}
OpDef& shape_slots(OpDef& def) {
  return def.in_optional("ShapeTensor", "[rank] int: the shape")
      .in_optional_list("ShapeTensorList", "[1] int each: the extents")
      .out("Out", "as the attribute shape")
      .shape_from("ShapeTensor")
      .shape_from("ShapeTensorList")
      .attr<std::vector<int64_t>>("shape", {}, "extents")
      .infer(infer_random);
}
OpDef& like_slots(OpDef& def) {
  return def.in("Input", "provides an extent")
      .out("Out", "as the attribute shape")
      .required_attr("shape", AttrType::kInts, "extents; the one at output_dim_idx is ignored")
      .attr<int32_t>("input_dim_idx", 0, "axis of Input")
      .attr<int32_t>("output_dim_idx", 0, "axis of Out")
      .infer(infer_batch_size_like);
}

void declare_all() {
  const auto make_gaussian = of_real_dtype([]<class T>(TypeTag<T>, const KernelArgs& op) { return gaussian<T>(op); });
  const auto op = [](const char* type, const char* doc) -> OpDef& { return declare_op(type, __FILE__).doc(doc); };
  uniform_attrs(shape_slots(op("uniform_random", "Out = random numbers, uniform in [min, max).")),
                at_least("diag_step", 0));
  uniform_attrs(like_slots(op("uniform_random_batch_size_like",
                              "Out = random numbers, uniform in [min, max), with one extent taken from Input.")),
                {});
  normal_attrs(shape_slots(op("gaussian_random", "Out = normally distributed random numbers.")))
      .ignores({"use_mkldnn"})
      .cpu_any(make_gaussian)
      .device_any(drawn_on_device("gaussian", "mean", "std"));
  normal_attrs(like_slots(op("gaussian_random_batch_size_like",
                             "Out = normally distributed random numbers, with one extent taken from Input.")))
      .cpu_any(make_gaussian)
      .device_any(drawn_on_device("gaussian", "mean", "std"));
  normal_attrs(op("truncated_gaussian_random",
                  "Out = normally distributed random numbers within two standard deviations of the mean."))
      .out("Out", "as the attribute shape")
      .required_attr("shape", AttrType::kInts, "extents")
      .infer(infer_random)
      .cpu_any(of_real_dtype([]<class T>(TypeTag<T>, const KernelArgs& args) { return truncated<T>(args); }))
      .device_any(drawn_on_device("truncated", "mean", "std"));
}

AB_OPS(declare_all);

}  // namespace
}  // namespace anabranch::tensor::random_op
