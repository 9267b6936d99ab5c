// Diagonals of matrices in two axes of a tensor: their sums (trace), and writing vectors to them (diag_embed). A
// diagonal with a positive offset is above the main one.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/reduce.h"

namespace anabranch::tensor::diagonals_op {
namespace {

using device::OnDevice, device::OnHost;

// `length` elements begin, begin + step, ..., in the two axes dim1 and dim2.
struct Diagonal {
  int dim1, dim2;
  int64_t begin = 0, step = 0, length = 0;
};

Diagonal dims_of(int32_t dim1, int32_t dim2, int rank) {
  const Diagonal d{normal_axis(dim1, rank, "dim1"), normal_axis(dim2, rank, "dim2")};
  AB_CHECK(d.dim1 != d.dim2, InvalidArgument, "dim1 and dim2 must be different axes, got {} and {}", dim1, dim2);
  return d;
}

Diagonal diagonal_of(const Shape& s, Diagonal d, int64_t offset) {
  const auto steps = dense_strides(s);
  const int64_t down = std::max<int64_t>(0, -offset), right = std::max<int64_t>(0, offset);
  d.begin = down * steps[d.dim1] + right * steps[d.dim2];
  d.step = steps[d.dim1] + steps[d.dim2];
  d.length = std::max<int64_t>(0, std::min(s[d.dim1] - down, s[d.dim2] - right));
  return d;
}

// Operand 0 traverses the other axes of s in order, densely; operand 1 traverses them in the tensor.
NdLoop<2> around(const Shape& s, const Diagonal& d) {
  const auto steps = dense_strides(s);
  std::array<int64_t, kMaxRank> dense{};
  int64_t step = 1;
  for (int a = s.rank() - 1; a >= 0; --a) {
    if (a == d.dim1 || a == d.dim2) continue;
    dense[a] = step;
    step *= s[a];
  }
  NdLoop<2> loop;
  for (int a = 0; a < s.rank(); ++a) {
    if (a != d.dim1 && a != d.dim2) loop.add_axis(s[a], {dense[a], steps[a]});
  }
  return loop;
}

// The same with the diagonal, along which operand 0 has stride 0.
NdLoop<2> with_diagonal(const Shape& s, const Diagonal& d) {
  NdLoop<2> loop = around(s, d);
  loop.add_axis(d.length, {0, d.step});
  return loop;
}

struct DiagonalAttrs {
  int32_t dim1, dim2, offset;
  explicit DiagonalAttrs(const KernelArgs& op)
      : dim1(op.attr<int32_t>("dim1")), dim2(op.attr<int32_t>("dim2")), offset(op.attr<int32_t>("offset")) {}
  Diagonal in(const Shape& s) const { return diagonal_of(s, dims_of(dim1, dim2, s.rank()), offset); }
  // As in Fluid, rows are in the first of the two axes, for either order of dim1 and dim2.
  Diagonal ordered_in(const Shape& s) const {
    Diagonal d = dims_of(dim1, dim2, s.rank());
    if (d.dim1 > d.dim2) std::swap(d.dim1, d.dim2);
    return diagonal_of(s, d, offset);
  }
};

// Calls fn(index in the result, first element of the diagonal) for each diagonal of the tensor.
template <class Fn> void each_diagonal(const KernelContext& c, const Shape& s, const Diagonal& d, Fn&& fn) {
  const NdLoop<2> loop = around(s, d);
  const auto step = loop.inner_strides();
  loop.run(c, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, d.length)), [&](const auto& at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) fn(at[0] + i * step[0], at[1] + i * step[1] + d.begin);
  });
}

void diagonal_attrs(OpDef& def) {
  def.attr<int32_t>("offset", 0, "diagonal; 0: the main one, positive: above it")
      .attr<int32_t>("dim1", -2, "axis of the rows; negative: from the end")
      .attr<int32_t>("dim2", -1, "axis of the columns, different from dim1");
}

AB_OP(trace)
    .doc("Out = the sums of a diagonal of the matrices in two axes of Input, with rows in the first one.")
    .in("Input", "[...] numbers, two axes or more")
    .out("Out", "the other axes of Input; [1] if there are none")
    .with(diagonal_attrs)
    .infer([](InferContext& c) {
      check_rank(c, "Input", 2, kMaxRank);
      const Shape& s = c.in("Input").shape;
      const Diagonal d = dims_of(c.attr<int32_t>("dim1"), c.attr<int32_t>("dim2"), s.rank());
      Shape out;
      for (int a = 0; a < s.rank(); ++a) {
        if (a != d.dim1 && a != d.dim2) out.push_back(s[a]);
      }
      c.set_out("Out", out.rank() ? out : scalar_shape(), c.in("Input").dtype);
    })
    .grad_reads({"Input"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      using Sum = FoldSum<T>;
      return [attrs = DiagonalAttrs(op), x = op.in("Input"), out = op.out("Out")](KernelContext& c) {
        const Diagonal d = attrs.ordered_in(c[x].shape());
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        each_diagonal(c, c[x].shape(), d, [=](int64_t place, int64_t first) {
          auto sum = typename Sum::Wide(0);
          for (int64_t k = 0; k < d.length; ++k) {
            sum = Sum::join(sum, static_cast<typename Sum::Wide>(from[first + k * d.step]));
          }
          to[place] = static_cast<T>(sum);
        });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("fold_axes/sum"), attrs = DiagonalAttrs(op), x = op.in("Input"),
              out = op.out("Out")](const DeviceContext& c) {
        const Diagonal d = attrs.ordered_in(c[x].shape());
        if (d.length == 0) return device::fill_zero(c, c[out]);
        device::sum_along(c, kernel, with_diagonal(c[x].shape(), d), c[x], d.begin, &c[out]);
      };
    });

AB_GRAD(trace)
    .doc("Input@GRAD = Out@GRAD on the diagonal, else 0.")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [attrs = DiagonalAttrs(op), dout = op.in("Out@GRAD"), dx = op.out("Input@GRAD")](KernelContext& c) {
        const Diagonal d = attrs.ordered_in(c[dx].shape());
        const T* from = c[dout].data<T>();
        T* to = zeroed<T>(c, dx);
        each_diagonal(c, c[dx].shape(), d, [=](int64_t place, int64_t first) {
          for (int64_t k = 0; k < d.length; ++k) to[first + k * d.step] = from[place];
        });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) -> Kernel {
      return [on = OnDevice(op.dtype()), attrs = DiagonalAttrs(op), dout = op.in("Out@GRAD"),
              dx = op.out("Input@GRAD")](KernelContext& c) {
        const Diagonal d = attrs.ordered_in(c[dx].shape());
        on.zero(c, &c[dx]);
        on.strided(c, turned(with_diagonal(c[dx].shape(), d)), c[dout], 0, &c[dx], d.begin);
      };
    });

template <class On> Kernel diag_embed_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), attrs = DiagonalAttrs(op), x = op.in("Input"), out = op.out("Out")](KernelContext& c) {
    const Diagonal d = attrs.in(c[out].shape());
    on.zero(c, &c[out]);
    const NdLoop<2> others = around(c[out].shape(), d);
    const int64_t n = c[x].shape()[c[x].shape().rank() - 1];
    NdLoop<2> loop;
    for (int a = 0; a < others.rank(); ++a) {
      loop.add_axis(others.extent(a), {others.strides(a)[1], others.strides(a)[0] * n});
    }
    loop.add_axis(n, {d.step, 1});
    on.strided(c, loop, c[x], 0, &c[out], d.begin);
  };
}

AB_OP(diag_embed)
    .doc("Out = matrices, in two new axes, with the last axis of Input on a diagonal and zeros elsewhere.")
    .in("Input", "[..., n] numbers")
    .out("Out", "offset||the axes of Input except the last, and two of extent n + |offset|offset|")
    .with(diagonal_attrs)
    .infer([](InferContext& c) {
      check_rank(c, "Input", 1, kMaxRank - 1);
      const Shape& s = c.in("Input").shape;
      const int rank = s.rank() + 1;
      const Diagonal d = dims_of(c.attr<int32_t>("dim1"), c.attr<int32_t>("dim2"), rank);
      const int64_t n = s[rank - 2], offset = c.attr<int32_t>("offset");
      Shape out;
      for (int a = 0, next = 0; a < rank; ++a) {
        const bool matrix = a == d.dim1 || a == d.dim2;
        out.push_back(!matrix ? s[next++] : n == kUnknown ? kUnknown : n + std::abs(offset));
      }
      c.set_out("Out", out, c.in("Input").dtype);
    })
    .no_grad("it has no gradient in Fluid")
    .cpu<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) { return diag_embed_kernel<OnHost>(op); })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return diag_embed_kernel<OnDevice>(op);
    });

}  // namespace
}  // namespace anabranch::tensor::diagonals_op
