// The inverse of max_pool2d_with_index: writes elements to the positions that they came from.
#include <algorithm>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/vision/extents.h"

namespace anabranch::vision::unpool_op {
namespace {

using Ints = std::vector<int32_t>;

Shape unpooled(const ir::Op& op, const Shape& x) {
  const Ints &kernel = op.attr<Ints>("ksize"), &stride = op.attr<Ints>("strides"), &padding = op.attr<Ints>("paddings");
  AB_CHECK(kernel.size() == 2 && stride.size() == 2 && padding.size() == 2, InvalidArgument,
           "ksize, strides and paddings must be two numbers each, got {}, {} and {}", kernel.size(), stride.size(),
           padding.size());
  Shape out = x;
  for (int d = 0; d < 2; ++d) {
    const auto k = static_cast<size_t>(d);
    if (x[d + 2] < 0) continue;
    const int64_t extent = product(std::max<int64_t>(0, x[d + 2] - 1), stride[k]) - 2 * int64_t{padding[k]} + kernel[k];
    AB_CHECK(extent > 0, InvalidArgument,
             "ksize, strides and paddings must give output extents above 0 for X {}, got {}", x.str(), extent);
    out.set(d + 2, extent);
  }
  return out;
}

// Calls fn(index in X, index in Out) for the elements of planes [begin, end).
template <class Fn>
void each_place(int64_t begin, int64_t end, int64_t plane, int64_t out_plane, const int32_t* indices, Fn&& fn) {
  for (int64_t p = begin; p < end; ++p) {
    for (int64_t i = p * plane; i < (p + 1) * plane; ++i) {
      AB_CHECK(indices[i] >= 0 && indices[i] < out_plane, InvalidArgument, "Indices must be from 0 to {}, got {}",
               out_plane - 1, indices[i]);
      fn(i, p * out_plane + indices[i]);
    }
  }
}

struct Planes {
  int64_t count, in, out;
  Planes(const Shape& x, const Shape& y) : count(x[0] * x[1]), in(x[2] * x[3]), out(y[2] * y[3]) {}
  int64_t grain() const { return kCheapGrain / (out + 1) + 1; }
};

AB_OP(unpool)
    .doc("Out[n, c] = X[n, c] at the positions Indices[n, c], the last one of duplicates, and 0 elsewhere.")
    .source("Zeiler et al., Adaptive deconvolutional networks, ICCV 2011, doi:10.1109/ICCV.2011.6126474")
    .in("X", "[N, C, H, W] float")
    .in("Indices", "[N, C, H, W] int32, indices in the images of Out")
    .out("Out", "[N, C, (H - 1) stride - 2 padding + ksize, ...]")
    .required_attr("ksize", AttrType::kInts, "extents of the pooling window")
    .required_attr("unpooling_type", AttrType::kString, "max")
    .attr<Ints>("strides", {1, 1}, "strides of the window")
    .attr<Ints>("paddings", {0, 0}, "padding of the images of Out")
    .traits(kRowWise)
    .infer([](InferContext& c) {
      check_rank(c, "X", 4, 4);
      check_same_shape(c, "X", "Indices");
      one_of("unpooling_type", {"max"})(c.attr<std::string>("unpooling_type"));
      AB_CHECK(!c.runtime() || c.in("Indices").dtype == DType::kInt32, InvalidArgument,
               "Indices must hold int32, got {}", dtype_name(c.in("Indices").dtype));
      c.set_out("Out", unpooled(c.op(), c.in("X").shape), c.in("X").dtype);
    })
    .grad_reads({"X", "Indices"}, {"Out"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), indices = op.in("Indices"), out = op.out("Out")](KernelContext& c) {
        const Planes p(c[x].shape(), c[out].shape());
        const auto* at = c[indices].data<int32_t>();
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(p.count, p.grain(), [=](int64_t begin, int64_t end) {
          std::fill(to + begin * p.out, to + end * p.out, T{0});
          each_place(begin, end, p.in, p.out, at, [=](int64_t i, int64_t o) { to[o] = from[i]; });
        });
      };
    });

AB_GRAD(unpool)
    .doc("X@GRAD = Out@GRAD at the positions Indices.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [indices = op.in("Indices"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const Planes p(c[dx].shape(), c[dout].shape());
        const auto* at = c[indices].data<int32_t>();
        const T* from = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        c.parallel_for(p.count, p.grain(), [=](int64_t begin, int64_t end) {
          each_place(begin, end, p.in, p.out, at, [=](int64_t i, int64_t o) { to[i] = from[o]; });
        });
      };
    });

}  // namespace
}  // namespace anabranch::vision::unpool_op
