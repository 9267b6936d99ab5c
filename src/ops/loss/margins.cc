// Losses of scores with a margin, and squared distances of rows.
#include "ops/declare/declare.h"
#include "ops/device/launch_fold.h"
#include "ops/device/launch_math.h"
#include "ops/device/scratch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/sums.h"

namespace anabranch::loss::margins_op {
namespace {

AB_OP(modified_huber_loss)
    .doc("With m = X (2 Y - 1): Out = -4 m where m < -1, (1 - m)^2 where m < 1, else 0.")
    .source("Zhang 2004, doi:10.1145/1015330.1015332")
    .in("X", "[N, 1] float, scores")
    .in("Y", "[N, 1] like X, 0 or 1")
    .out_intermediate("IntermediateVal", "m")
    .out("Out", "[N, 1]")
    .infer([](InferContext& c) {
      check_same(c, "X", "Y");
      check_rank(c, "X", 2, 2);
      check_shape(c, "X", Shape{kUnknown, 1});
      c.same_shape("IntermediateVal", "X");
      c.same_shape("Out", "X");
    })
    .grad_reads({"X", "Y"}, {"IntermediateVal"})
    .grad_to({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), y = op.in("Y"), margin = op.out("IntermediateVal"), out = op.out("Out")](KernelContext& c) {
            const T *p = c[x].data<T>(), *q = c[y].data<T>();
            T *margins = needed<T>(c, margin), *to = needed<T>(c, out);
            c.parallel_each(c[x].numel(), kCheapGrain, [=](int64_t i) {
              const T m = p[i] * (2 * q[i] - 1);
              if (margins) margins[i] = m;
              if (to) to[i] = m < -1 ? -4 * m : m < 1 ? (1 - m) * (1 - m) : T{0};
            });
          };
    });

AB_GRAD(modified_huber_loss)
    .doc("X@GRAD = Out@GRAD (2 Y - 1) times -4 where m < -1, -2 (1 - m) where m < 1, else 0.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [y = op.in("Y"), margin = op.in("IntermediateVal"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        const T *q = c[y].data<T>(), *margins = c[margin].data<T>(), *d = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        c.parallel_each(c[dx].numel(), kCheapGrain, [=](int64_t i) {
          const T m = margins[i], slope = m < -1 ? T{-4} : m < 1 ? -2 * (1 - m) : T{0};
          to[i] = d[i] * (2 * q[i] - 1) * slope;
        });
      };
    });

// ---- squared_l2_distance

// Rows of X; Y has the same number of rows, or one that is used for all.
struct RowPairs {
  int64_t count, width, other;  // other: elements from one row of Y to the next
  RowPairs(const Shape& x, const Shape& y)
      : count(x[0]), width(x.numel(1, x.rank())), other(y[0] == x[0] ? width : 0) {}
};

void infer_squared_distance(InferContext& c) {
  check_same_dtype(c, "X", "Y");
  check_rank(c, "X", 2, kMaxRank);
  const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
  const int64_t width = x.numel(1, x.rank()), other = y.rank() == x.rank() ? y.numel(1, y.rank()) : 0;
  AB_CHECK(y.rank() == x.rank() && (width < 0 || other < 0 || width == other), ShapeMismatch,
           "Y must have the row size and rank of X {}, got {}", x.str(), y.str());
  AB_CHECK(y[0] == 1 || y[0] == x[0] || y[0] < 0 || x[0] < 0, ShapeMismatch, "Y must have 1 row or {}, got {}", x[0],
           y.str());
  c.set_out("sub_result", Shape{x[0], width < 0 ? kUnknown : width}, c.in("X").dtype);
  c.set_out("Out", Shape{x[0], 1}, c.in("X").dtype);
  c.share_lod("Out", "X");
}

AB_OP(squared_l2_distance)
    .doc("Out = the sums of (X - Y)^2 over each row.")
    .in("X", "[N, ...] float")
    .in("Y", "[N, ...] or [1, ...], rows of the size of those of X")
    .out_intermediate("sub_result", "[N, elements of a row]: X - Y")
    .out("Out", "[N, 1]")
    .infer(infer_squared_distance)
    .grad_reads({"X", "Y"}, {"sub_result"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), diff = op.out("sub_result"), out = op.out("Out")](KernelContext& c) {
        const RowPairs rows(c[x].shape(), c[y].shape());
        const T *p = c[x].data<T>(), *q = c[y].data<T>();
        T *diffs = needed<T>(c, diff), *to = needed<T>(c, out);
        const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, rows.width));
        c.parallel_for(rows.count, grain, [=](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const T *a = p + r * rows.width, *b = q + r * rows.other;
            const auto gap = [=](int64_t k) { return a[k] - b[k]; };
            for (int64_t k = 0; diffs && k < rows.width; ++k) diffs[r * rows.width + k] = gap(k);
            if (to) to[r] = sum_of<T>(rows.width, [=](int64_t k) { return gap(k) * gap(k); });
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [subtract = device::kernel_of<T>("binary/sub"), squares = device::kernel_of<T>("fold_axes/squares"),
              scratch = device::Scratch(), x = op.in("X"), y = op.in("Y"), diff = op.out("sub_result"),
              out = op.out("Out")](const DeviceContext& c) mutable {
        const RowPairs rows(c[x].shape(), c[y].shape());
        const Shape all = {rows.count, rows.width};
        Tensor& diffs = c.needs(diff) ? c[diff] : scratch.of(c, all, dtype_of<T>);
        NdLoop<3> loop;
        loop.add_axis(rows.count, {rows.width, rows.width, rows.other});
        loop.add_axis(rows.width, {1, 1, 1});
        c.launch(subtract,
                 device::BinaryArgs{
                     device::operand(c[x]), device::operand(c[y]), device::operand(diffs), device::axes_of(loop), {}});
        if (c.needs(out)) device::launch_fold(c, squares, diffs, all, Shape{rows.count, 1}, c[out]);
      };
    });

AB_GRAD(squared_l2_distance)
    .doc("X@GRAD = 2 Out@GRAD (X - Y); Y@GRAD = its negative, summed over the rows if Y has only one.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), diff = op.in("sub_result"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](KernelContext& c) {
        const RowPairs rows(c[x].shape(), c[y].shape());
        const T *diffs = c[diff].data<T>(), *d = c[dout].data<T>();
        T *up = needed<T>(c, dx), *down = zeroed<T>(c, dy);
        for (int64_t r = 0; r < rows.count; ++r) {
          for (int64_t k = 0; k < rows.width; ++k) {
            const T slope = 2 * d[r] * diffs[r * rows.width + k];
            if (up) up[r * rows.width + k] = slope;
            if (down) down[r * rows.other + k] -= slope;
          }
        }
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [slopes = device::kernel_of<T>("fold_axes_grad/squares"), sum = device::kernel_of<T>("fold_axes/sum"),
              scale = device::kernel_of<T>("scalar/scale"), scratch = device::Scratch(), x = op.in("X"), y = op.in("Y"),
              diff = op.in("sub_result"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](const DeviceContext& c) mutable {
        const RowPairs rows(c[x].shape(), c[y].shape());
        const Shape all = {rows.count, rows.width};
        Tensor& up = c.needs(dx) ? c[dx] : scratch.of(c, all, dtype_of<T>);
        device::launch_fold_grad(c, slopes, &c[diff], nullptr, c[dout], all, Shape{rows.count, 1}, up);
        if (!c.needs(dy)) return;
        const Shape kept = {rows.other ? rows.count : 1, rows.width};
        device::launch_fold(c, sum, up, all, kept, c[dy]);
        device::ScalarArgs a{};
        device::put(a, 0, -1.0);
        device::launch_scalar(c, scale, a, c[dy], c[dy]);
      };
    });

}  // namespace
}  // namespace anabranch::loss::margins_op
