// Normalizes each row separately.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/declare/attr_checks.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/kernels/outputs.h"
#include "ops/nn/channels.h"
#include "ops/nn/layer_norm_doubles.h"
#include "ops/nn/layer_norm_rows.h"
#include "ops/nn/norm_second_order.h"

namespace anabranch::nn::layer_norm_op {
namespace {

constexpr int64_t kGrain = 4096;
constexpr int64_t kMaxChunks = 16;

struct Dims {  // rows are normalized one by one
  int64_t rows, width;
  Dims(const Shape& s, int begin) : rows(s.numel(0, begin)), width(s.numel(begin, s.rank())) {}
  int64_t grain() const { return kGrain / std::max<int64_t>(1, width) + 1; }
};

int begin_axis(const InferContext& c) {
  const int axis = c.attr<int32_t>("begin_norm_axis");
  const Shape& x = c.in("X").shape;
  AB_CHECK(axis > 0 && axis < x.rank(), InvalidArgument, "begin_norm_axis must be from 1 to {} for X {}, got {}",
           x.rank() - 1, x.str(), axis);
  return axis;
}

int64_t product(const Shape& s, int first, int last) { return s.slice(first, last).numel(); }  // -1: unknown

void infer(InferContext& c) {
  const int axis = begin_axis(c);
  const Shape& x = c.in("X").shape;
  for (const char* slot : {"Scale", "Bias"}) check_statistics(c, slot, product(x, axis, x.rank()));
  c.same_as("Y", "X");
  for (const char* slot : {"Mean", "Variance"}) c.set_out(slot, Shape{product(x, 0, axis)}, dtype_of_statistics(c));
}

void infer_grad(InferContext& c) {
  const int axis = begin_axis(c);
  const Shape& x = c.in("X").shape;
  const int64_t rows = product(x, 0, axis), width = product(x, axis, x.rank());
  check_same(c, "X", "Y@GRAD");
  for (const char* slot : {"Scale", "Bias"}) check_statistics(c, slot, width);
  for (const char* slot : {"Mean", "Variance"}) check_statistics(c, slot, rows);
  grad_as(c, "X@GRAD", "X");
  for (const std::string slot : {"Scale", "Bias"}) {  // they have a gradient even if they are not given
    if (c.has_out(slot + "@GRAD"))
      c.set_out(slot + "@GRAD", c.has_in(slot) ? c.in(slot).shape : Shape{width}, dtype_of_statistics(c));
  }
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias");
  const Out y = op.out("Y"), mean = op.out("Mean"), variance = op.out("Variance");
  const T epsilon = static_cast<T>(op.attr<float>("epsilon"));
  const int axis = op.attr<int32_t>("begin_norm_axis");
  return [=](KernelContext& c) {
    const Dims d(c[x].shape(), axis);
    const T* from = c[x].data<T>();
    const T *s = scale ? c[scale].data<T>() : nullptr, *b = bias ? c[bias].data<T>() : nullptr;
    T *to = c[y].mutable_data<T>(), *m = c[mean].mutable_data<T>(), *v = c[variance].mutable_data<T>();
    std::fill(m, m + d.rows, T{0});
    std::fill(v, v + d.rows, T{0});
    if (d.width == 0) return;
    c.parallel_each(d.rows, d.grain(), [=](int64_t r) {
      normalize_row(from + r * d.width, s, b, d.width, epsilon, to + r * d.width, m + r, v + r);
    });
  };
};

template <class T> struct Backward {
  In x, scale, mean, variance, dy;
  Out dx, dscale, dbias;
  T epsilon;
  int axis;
  std::vector<double> partial;  // per chunk of rows: sums of dy xhat, then of dy

  explicit Backward(const KernelArgs& op)
      : x(op.in("X")),
        scale(op.in("Scale")),
        mean(op.in("Mean")),
        variance(op.in("Variance")),
        dy(op.in("Y@GRAD")),
        dx(op.out("X@GRAD")),
        dscale(op.out("Scale@GRAD")),
        dbias(op.out("Bias@GRAD")),
        epsilon(static_cast<T>(op.attr<float>("epsilon"))),
        axis(op.attr<int32_t>("begin_norm_axis")) {}

  void operator()(KernelContext& c) {
    const Dims d(c[x].shape(), axis);
    const T *data = c[x].data<T>(), *g = c[dy].data<T>();
    const T *m = c[mean].data<T>(), *v = c[variance].data<T>();
    if (c.needs(dx) && d.width) {
      const T* s = scale ? c[scale].data<T>() : nullptr;
      T* to = c[dx].mutable_data<T>();
      c.parallel_each(d.rows, d.grain(), [=, this](int64_t r) {
        const T inv = 1 / std::sqrt(v[r] + epsilon);
        normalize_grad_row(data + r * d.width, g + r * d.width, s, d.width, m[r], inv, to + r * d.width);
      });
    }
    if (c.needs(dscale) || c.needs(dbias)) grad_vectors(c, d, data, g, m, v);
  }

  // Chunks of rows depend only on their number; their sums are added in order.
  void grad_vectors(KernelContext& c, const Dims& d, const T* data, const T* g, const T* m, const T* v) {
    const int64_t step = std::max((d.rows + kMaxChunks - 1) / kMaxChunks, d.grain());
    const int64_t chunks = std::max<int64_t>(1, (d.rows + step - 1) / step);
    partial.assign(static_cast<size_t>(chunks * 2 * d.width), 0.0);
    c.parallel_each(chunks, 1, [&](int64_t p) {
      double *products = partial.data() + p * 2 * d.width, *sums = products + d.width;
      for (int64_t r = p * step; r < std::min(d.rows, (p + 1) * step); ++r) {
        const T inv = 1 / std::sqrt(v[r] + epsilon);
        add_norm_sums(data + r * d.width, g + r * d.width, d.width, m[r], inv, products, sums);
      }
    });
    add_up(c, dscale, d.width, chunks, 0);
    add_up(c, dbias, d.width, chunks, d.width);
  }

  void add_up(KernelContext& c, Out out, int64_t width, int64_t chunks, int64_t from) const {
    T* to = needed<T>(c, out);
    for (int64_t i = 0; to && i < width; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < chunks; ++p) sum += partial[static_cast<size_t>(p * 2 * width + from + i)];
      to[i] = static_cast<T>(sum);
    }
  }
};

// By "layer_norm" or "layer_norm_grad", whose operands have other slot names.
constexpr auto forward_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("layer_norm"), epsilon = static_cast<double>(op.attr<float>("epsilon")),
          axis = op.attr<int32_t>("begin_norm_axis"), x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"),
          y = op.out("Y"), mean = op.out("Mean"), variance = op.out("Variance")](const DeviceContext& c) {
    const Dims d(c[x].shape(), axis);
    device::LayerNormArgs a{};
    a.x = device::operand(c[x]);
    if (scale) a.scale = device::operand(c[scale]);
    if (bias) a.bias = device::operand(c[bias]);
    a.y = device::operand(c[y]);
    a.mean = device::operand(c[mean]);
    a.variance = device::operand(c[variance]);
    a.rows = d.rows, a.width = d.width;
    a.epsilon = epsilon;
    c.launch(kernel, a);
  };
};

constexpr auto backward_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return
      [kernel = device::kernel_of<T>("layer_norm_grad"), o = Backward<device::Compute<T>>(op)](const DeviceContext& c) {
        const Dims d(c[o.x].shape(), o.axis);
        device::LayerNormArgs a{};
        a.x = device::operand(c[o.x]);
        if (o.scale) a.scale = device::operand(c[o.scale]);
        a.mean_in = device::operand(c[o.mean]);
        a.variance_in = device::operand(c[o.variance]);
        a.dy = device::operand(c[o.dy]);
        if (c.needs(o.dx)) a.y = device::operand(c[o.dx]);
        if (c.needs(o.dscale)) a.mean = device::operand(c[o.dscale]);
        if (c.needs(o.dbias)) a.variance = device::operand(c[o.dbias]);
        a.rows = d.rows, a.width = d.width;
        a.epsilon = static_cast<double>(o.epsilon);
        c.launch(kernel, a);
      };
};

AB_OP(layer_norm)
    .doc(
        "Y = (X - mean) / sqrt(variance + epsilon) Scale + Bias, with mean and (biased) variance over the axes from "
        "begin_norm_axis on.")
    .source("Ba, Kiros & Hinton 2016, arXiv:1607.06450")
    .in("X", "[...] float, at least 2 axes")
    .in_optional("Scale", "[product of the normalized extents]; 1 if not given")
    .in_optional("Bias", "like Scale; 0 if not given")
    .out("Y", "like X")
    .out_intermediate("Mean", "[product of the other extents]")
    .out_intermediate("Variance", "like Mean")
    .attr<float>("epsilon", 1.0e-5f, "keeps the quotient finite", within("epsilon", 0.0f, 0.001f))
    .attr<int32_t>("begin_norm_axis", 1, "first axis that is normalized, at least 1")
    .traits(kRowWise)
    .infer(infer)
    .grad_reads({"X", "Scale", "Bias"}, {"Mean", "Variance"})
    .cpu<float, double>(forward)
    .device<float, double, float16, bfloat16>(forward_on_device);

AB_GRAD(layer_norm)
    .doc("Gradients of layer_norm with respect to X, Scale and Bias.")
    .grad(second_order::through([](second_order::Ops& o) {
      const int rank = o.rank(o.in("X")), begin = o.attr<int32_t>("begin_norm_axis");
      AB_CHECK(begin == rank - 1, Unsupported,
               "layer_norm: second-order gradients are supported only over the last axis, got begin_norm_axis {} of {}",
               begin, rank);
      normalized_gradient(o, {{begin}, axes_without(rank, begin, begin), begin, o.attr<float>("epsilon")});
    }))
    .infer(infer_grad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return Backward<T>(op); })
    .device<float, double, float16, bfloat16>(backward_on_device);

}  // namespace
}  // namespace anabranch::nn::layer_norm_op
