// Cross products of 3-vectors along an axis.
#include "ops/declare/declare.h"
#include "ops/device/launch_pair.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/wrapping.h"

namespace anabranch::math::cross_op {
namespace {

constexpr int32_t kFirstOfThree = 9;  // Fluid's code for "the first axis of extent 3"

int cross_axis(const Shape& x, int32_t dim) {
  if (dim != kFirstOfThree) {
    const int axis = normal_axis(dim, x.rank(), "dim");
    AB_CHECK(x[axis] == 3 || x[axis] == kUnknown, InvalidArgument, "axis {} of X must have extent 3, got {}", axis,
             x.str());
    return axis;
  }
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x[axis] == 3) return axis;
  }
  AB_CHECK(!x.known(), InvalidArgument, "X must have an axis of extent 3, got {}", x.str());
  return 0;
}

// out = a x b for the vectors along an axis, with stride `inner`.
template <class T> void cross(const KernelContext& c, const Shape& s, int axis, const T* a, const T* b, T* out) {
  using Wide = Wrapping<T>;
  const auto difference = [](T p, T q, T r, T t) {
    return static_cast<T>(static_cast<Wide>(p) * static_cast<Wide>(q) - static_cast<Wide>(r) * static_cast<Wide>(t));
  };
  const int64_t inner = s.numel(axis + 1, s.rank());
  c.parallel_each(s.numel(0, axis) * inner, kCheapGrain / 4, [=](int64_t i) {
    const int64_t x = i / inner * 3 * inner + i % inner, y = x + inner, z = y + inner;
    const T first = difference(a[y], b[z], a[z], b[y]), second = difference(a[z], b[x], a[x], b[z]);
    out[z] = difference(a[x], b[y], a[y], b[x]);
    out[x] = first;
    out[y] = second;
  });
}

void cross_there(const DeviceContext& c, ab_kernel kernel, int32_t dim, const Tensor& x, const Tensor& y, Tensor& out) {
  const Shape& s = x.shape();
  const int axis = cross_axis(s, dim);
  device::PairArgs a = device::pair_of(x, y, s.numel(0, axis), s.numel(axis + 1, s.rank()));
  a.out = device::operand(out);
  c.launch(kernel, a);
}

AB_OP(cross)
    .doc("Out = the cross products of the 3-vectors along an axis of X and Y.")
    .in("X", "[...] numbers, with extent 3 on the axis")
    .in("Y", "like X")
    .out("Out", "[...] like X")
    .attr<int32_t>("dim", kFirstOfThree, "the axis; negative: from the end; 9: the first axis of extent 3")
    .infer([](InferContext& c) {
      check_same(c, "X", "Y");
      cross_axis(c.in("X").shape, c.attr<int32_t>("dim"));
      c.same_as("Out", "X");
    })
    .grad_reads({"X", "Y"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [dim = op.attr<int32_t>("dim"), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        cross(c, s, cross_axis(s, dim), c[x].data<T>(), c[y].data<T>(), c[out].mutable_data<T>());
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("cross"), dim = op.attr<int32_t>("dim"), x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](const DeviceContext& c) { cross_there(c, kernel, dim, c[x], c[y], c[out]); };
    });

AB_GRAD(cross)
    .doc("X@GRAD = Y x Out@GRAD, Y@GRAD = Out@GRAD x X.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [dim = op.attr<int32_t>("dim"), x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const int axis = cross_axis(s, dim);
        const T *a = c[x].data<T>(), *b = c[y].data<T>(), *d = c[dout].data<T>();
        if (c.needs(dx)) cross(c, s, axis, b, d, c[dx].mutable_data<T>());
        if (c.needs(dy)) cross(c, s, axis, d, a, c[dy].mutable_data<T>());
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("cross"), dim = op.attr<int32_t>("dim"), x = op.in("X"), y = op.in("Y"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) {
        if (c.needs(dx)) cross_there(c, kernel, dim, c[y], c[dout], c[dx]);
        if (c.needs(dy)) cross_there(c, kernel, dim, c[dout], c[x], c[dy]);
      };
    });

}  // namespace
}  // namespace anabranch::math::cross_op
