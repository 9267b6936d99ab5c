// Products fused with the ops after them, as in inference programs of 1.8.5.
#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/gemm.h"

namespace anabranch::math::fusion_products_op {
namespace {

constexpr const char* kInference = "it is for inference";

// ---- a chain of fully connected layers

void infer_chain(InferContext& c) {
  const int layers = c.n_in("W");
  AB_CHECK(layers > 1, InvalidArgument, "W must list at least two matrices, got {}", layers);
  AB_CHECK(c.n_in("Bias") == layers, InvalidArgument, "Bias must list one vector for each of the {} W, got {}", layers,
           c.n_in("Bias"));
  check_rank(c, "X", 2, 2);
  const DType dtype = c.in("X").dtype;
  int64_t width = c.in("X").shape[1];
  for (int i = 0; i < layers; ++i) {
    const Meta &w = c.in("W", i), &bias = c.in("Bias", i);
    AB_CHECK(w.shape.rank() == 2 && compatible(w.shape.slice(0, 1), Shape{width}), ShapeMismatch,
             "W[{}] must be a matrix of {} rows, got {}", i, width, w.shape.str());
    width = w.shape[1];
    const int64_t have = bias.shape.numel();
    AB_CHECK(have < 0 || width < 0 || have == width, ShapeMismatch, "Bias[{}] must have {} elements, got {}", i, width,
             bias.shape.str());
    AB_CHECK(w.dtype == dtype && bias.dtype == dtype, InvalidArgument, "W[{}] and Bias[{}] must hold {}, like X", i, i,
             dtype_name(dtype));
    const Shape out{c.in("X").shape[0], width};
    if (i + 1 < layers) {
      c.set_out("ReluOut", out, dtype, i);
    } else {
      c.set_out("Out", out, dtype);
    }
  }
  AB_CHECK(c.n_out("ReluOut") == layers - 1, InvalidArgument, "ReluOut must list {} variables, got {}", layers - 1,
           c.n_out("ReluOut"));
  c.share_lod("Out", "X");
}

template <class T> void add_and_cut(const KernelContext& c, const T* bias, int64_t columns, int64_t n, T* x) {
  c.parallel_each(n, kCheapGrain, [=](int64_t i) {
    const T sum = x[i] + bias[i % columns];
    x[i] = sum < 0 ? T{0} : sum;
  });
}

constexpr auto chain_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("X"), w = op.in("W"), bias = op.in("Bias");
  const Out between = op.out("ReluOut"), out = op.out("Out");
  const auto products = std::make_shared<std::vector<Gemm<T>>>(static_cast<size_t>(w.count));
  const auto unwanted = std::make_shared<std::vector<Tensor>>(static_cast<size_t>(w.count));
  return [=](KernelContext& c) {
    const Tensor* from = &c[x];
    for (int i = 0; i < w.count; ++i) {
      const Tensor& weights = c.at(w, i);
      Tensor* to = &(*unwanted)[static_cast<size_t>(i)];
      if (i + 1 == w.count) {
        to = &c[out];
      } else if (c.needs(between, i)) {
        to = &c.at(between, i);
      } else {
        to->resize(Shape{from->rows(), weights.shape()[1]}, dtype_of<T>);
      }
      const GemmDims d{.m = from->rows(), .n = weights.shape()[1], .k = weights.shape()[0]};
      T* made = to->mutable_data<T>();
      (*products)[static_cast<size_t>(i)].run(c, d, from->data<T>(), weights.data<T>(), made);
      add_and_cut(c, c.at(bias, i).data<T>(), d.n, d.m * d.n, made);
      from = to;
    }
  };
};

AB_OP(fusion_repeated_fc_relu)
    .doc("Out = max(... max(X W[0] + Bias[0], 0) ... W[n] + Bias[n], 0); ReluOut holds the intermediate results.")
    .in("X", "[rows, columns] float")
    .in_list("W", "[columns, columns of the next layer] like X, two or more")
    .in_list("Bias", "one number per column of W, like X")
    .out_list("ReluOut", "the result of each layer except the last")
    .out("Out", "[rows, columns of the last W] like X")
    .infer(infer_chain)
    .no_grad(kInference)
    .cpu<float, double>(chain_kernel);

// ---- the sum over pairs of columns of a factorization machine

void infer_pairs(InferContext& c) {
  check_same_dtype(c, "X", "Y");
  check_rank(c, "X", 2, 2);
  check_rank(c, "Y", 2, 2);
  const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
  AB_CHECK(x[1] == y[0] || x[1] == kUnknown || y[0] == kUnknown, ShapeMismatch,
           "the number of rows of Y must be the number of columns of X, got {} and {}", y.str(), x.str());
  const DType dtype = c.in("X").dtype;
  c.set_out("SquaredX", x, dtype);
  c.set_out("SquaredY", y, dtype);
  c.set_out("SquaredXY", Shape{x[0], y[1]}, dtype);
  c.set_out("Out", Shape{x[0], y[1]}, dtype);
}

template <class T> struct Pairs {
  In x, y;
  Out x2, y2, xy2, out;
  T scalar;
  std::shared_ptr<Gemm<T>> product = std::make_shared<Gemm<T>>(), product_of_squares = std::make_shared<Gemm<T>>();
  std::shared_ptr<Tensor[]> scratch{new Tensor[3]};

  explicit Pairs(const KernelArgs& op)
      : x(op.in("X")),
        y(op.in("Y")),
        x2(op.out("SquaredX")),
        y2(op.out("SquaredY")),
        xy2(op.out("SquaredXY")),
        out(op.out("Out")),
        scalar(static_cast<T>(op.attr<float>("scalar"))) {}

  // An output, or scratch memory if it is not requested.
  T* memory(KernelContext& c, Out slot, int i, const Shape& shape) const {
    if (c.needs(slot)) return c[slot].mutable_data<T>();
    scratch[i].resize(shape, dtype_of<T>);
    return scratch[i].mutable_data<T>();
  }

  void operator()(KernelContext& c) const {
    const Shape &xs = c[x].shape(), &ys = c[y].shape();
    const GemmDims d{.m = xs[0], .n = ys[1], .k = xs[1]};
    const T *a = c[x].data<T>(), *b = c[y].data<T>();
    T *aa = memory(c, x2, 0, xs), *bb = memory(c, y2, 1, ys), *whole = memory(c, xy2, 2, Shape{xs[0], ys[1]});
    const auto square = [](T v) { return v * v; };
    map(c, kCheapGrain, c[x].numel(), a, aa, square);
    map(c, kCheapGrain, c[y].numel(), b, bb, square);
    product->run(c, d, a, b, whole);
    T* to = c[out].mutable_data<T>();
    product_of_squares->run(c, d, aa, bb, to);
    map(c, kCheapGrain, d.m * d.n, whole, whole, square);
    map(c, kCheapGrain, d.m * d.n, whole, to, to, [s = scalar](T v, T w) { return (v - w) * s; });
  }
};

AB_OP(fusion_squared_mat_sub)
    .doc("Out = scalar ((X Y)^2 - X^2 Y^2), squares elementwise: the pairwise sums of a factorization machine.")
    .source("Rendle, Factorization machines, ICDM 2010")
    .in("X", "[rows, columns] float")
    .in("Y", "[columns, factors] like X")
    .out_intermediate("SquaredX", "X^2")
    .out_intermediate("SquaredY", "Y^2")
    .out_intermediate("SquaredXY", "(X Y)^2")
    .out("Out", "[rows, factors] like X")
    .attr<float>("scalar", 1.0f, "factor for the result")
    .infer(infer_pairs)
    .no_grad(kInference)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return Pairs<T>(op); });

}  // namespace
}  // namespace anabranch::math::fusion_products_op
