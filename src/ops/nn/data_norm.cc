// Normalizes by statistics that are parameters: a count, a sum and a sum of squares per column, which the optimizer
// updates by the "gradients" of the backward pass.
#include <algorithm>
#include <cmath>

#include "ops/device/args_rows.h"
#include "ops/device/zeros.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/wide.h"
#include "ops/nn/channels.h"
#include "ops/nn/data_norm_rows.h"

namespace anabranch::nn::data_norm_op {
namespace {

void check_columns(const InferContext& c) {
  check_rank(c, "X", 2, 2);
  const int32_t dim = c.attr<int32_t>("slot_dim");
  const int64_t columns = c.in("X").shape[1];
  AB_CHECK(dim <= 0 || columns == kUnknown || columns % dim == 0, InvalidArgument,
           "slot_dim must divide the columns of X {}, got {}", c.in("X").shape.str(), dim);
}

void check_vectors(const InferContext& c, std::initializer_list<const char*> slots) {
  for (const char* slot : slots) check_vector(c, slot, c.in("X").shape[1]);
}

void infer(InferContext& c) {
  check_columns(c);
  AB_CHECK(!c.attr<bool>("enable_scale_and_shift") || (c.has_in("scale_w") && c.has_in("bias")), InvalidArgument,
           "scale_w and bias must be given with enable_scale_and_shift");
  check_vectors(c, {"BatchSize", "BatchSum", "BatchSquareSum", "scale_w", "bias"});
  const Meta& x = c.in("X");
  c.same_as("Y", "X");
  c.set_out("Means", Shape{x.shape[1]}, x.dtype);
  c.set_out("Scales", Shape{x.shape[1]}, x.dtype);
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const bool shift = op.attr<bool>("enable_scale_and_shift");
  return [=, slot_dim = op.attr<int32_t>("slot_dim"), x = op.in("X"), size = op.in("BatchSize"),
          sum = op.in("BatchSum"), square = op.in("BatchSquareSum"), scale_w = op.in("scale_w"), bias = op.in("bias"),
          y = op.out("Y"), means = op.out("Means"), scales = op.out("Scales")](KernelContext& c) {
    const int64_t rows = c[x].rows(), columns = c[x].row_elems();
    const ColumnSlots slots(columns, slot_dim);
    const T *from = c[x].data<T>(), *n = c[size].data<T>(), *s = c[sum].data<T>(), *q = c[square].data<T>();
    const T *w = shift ? c[scale_w].data<T>() : nullptr, *b = shift ? c[bias].data<T>() : nullptr;
    T *to = c[y].mutable_data<T>(), *mean = c[means].mutable_data<T>(), *scale = c[scales].mutable_data<T>();
    for (int64_t k = 0; k < columns; ++k) {
      mean[k] = s[k] / n[k];
      scale[k] = std::sqrt(n[k] / q[k]);
    }
    c.parallel_for(rows, 4096 / std::max<int64_t>(1, columns) + 1, [=](int64_t begin, int64_t end) {
      in_wide_vectors([=] {
        for (int64_t r = begin; r < end; ++r) {
          T* row = to + r * columns;
          normalize_row(slots, from + r * columns, mean, scale, row);
          for (int64_t k = 0; w && k < columns; ++k) row[k] = row[k] * w[k] + b[k];
        }
      });
    });
  };
};

// Fluid 1.8.5 passes the gradient where the slot is not shown.
template <class T> void pass_gradient(KernelContext& c, const Given<T>& a, int64_t columns, T* to) {
  c.parallel_for(a.rows, 4096 / std::max<int64_t>(1, columns) + 1, [=](int64_t begin, int64_t end) {
    in_wide_vectors([=] {
      for (int64_t r = begin; r < end; ++r) {
        const T* g = a.dy + r * columns;
        T* row = to + r * columns;
        for (int64_t k = 0; k < columns; ++k) row[k] = g[k] * a.scale[k];
        for (int64_t k = 0; a.w && k < columns; ++k) row[k] *= a.w[k];
      }
    });
  });
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const T epsilon = static_cast<T>(op.attr<float>("epsilon"));
  const bool shift = op.attr<bool>("enable_scale_and_shift");
  return [=, slot_dim = op.attr<int32_t>("slot_dim"), x = op.in("X"), means = op.in("Means"), scales = op.in("Scales"),
          scale_w = op.in("scale_w"), dy = op.in("Y@GRAD"), dx = op.out("X@GRAD"), dsize = op.out("BatchSize@GRAD"),
          dsum = op.out("BatchSum@GRAD"), dsquare = op.out("BatchSquareSum@GRAD"), dscale = op.out("scale_w@GRAD"),
          dbias = op.out("bias@GRAD")](KernelContext& c) {
    const int64_t columns = c[x].row_elems();
    const ColumnSlots slots(columns, slot_dim);
    const Given<T> given{c[x].data<T>(),      c[means].data<T>(),
                         c[scales].data<T>(), shift ? c[scale_w].data<T>() : nullptr,
                         c[dy].data<T>(),     epsilon,
                         c[x].rows()};
    T *size = needed<T>(c, dsize), *sum = needed<T>(c, dsum), *square = needed<T>(c, dsquare),
      *to_w = needed<T>(c, dscale), *to_b = needed<T>(c, dbias);
    c.parallel_each((columns + Strip<T>::kColumns - 1) / Strip<T>::kColumns, 1, [=](int64_t k) {
      Strip<T> strip(k, columns);
      in_wide_vectors([&] { strip.add_rows(given, slots); });
      strip.leave(strip.size, size);
      strip.leave(strip.sum, sum);
      strip.leave(strip.square, square);
      strip.leave(strip.slope_w, to_w);
      strip.leave(strip.slope_b, to_b);
    });
    if (c.needs(dx)) pass_gradient(c, given, columns, c[dx].mutable_data<T>());
  };
};

// ---- on devices

device::DataNormArgs args_of(const KernelContext& c, In x, int32_t slot_dim) {
  device::DataNormArgs a{};
  a.x = device::operand(c[x]);
  a.rows = c[x].rows();
  a.columns = c[x].row_elems();
  a.slot = ColumnSlots(a.columns, slot_dim).dim;
  return a;
}

constexpr auto queued_forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const bool shift = op.attr<bool>("enable_scale_and_shift");
  return [kernel = device::kernel_of<T>("data_norm"), slot_dim = op.attr<int32_t>("slot_dim"), x = op.in("X"),
          size = op.in("BatchSize"), sum = op.in("BatchSum"), square = op.in("BatchSquareSum"),
          scale_w = shift ? op.in("scale_w") : In(), bias = shift ? op.in("bias") : In(), y = op.out("Y"),
          means = op.out("Means"), scales = op.out("Scales")](const DeviceContext& c) {
    device::DataNormArgs a = args_of(c, x, slot_dim);
    a.size = device::operand(c[size]);
    a.sum = device::operand(c[sum]);
    a.square = device::operand(c[square]);
    a.scale_w = device::given_operand(c, scale_w);
    a.bias = device::given_operand(c, bias);
    a.y = device::operand(c[y]);
    a.means = device::operand(c[means]);
    a.scales = device::operand(c[scales]);
    c.launch(kernel, a);
  };
};

constexpr auto queued_backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("data_norm_grad"), slot_dim = op.attr<int32_t>("slot_dim"),
          epsilon = static_cast<double>(op.attr<float>("epsilon")), x = op.in("X"), means = op.in("Means"),
          scales = op.in("Scales"), scale_w = op.attr<bool>("enable_scale_and_shift") ? op.in("scale_w") : In(),
          dy = op.in("Y@GRAD"), dx = op.out("X@GRAD"), dsize = op.out("BatchSize@GRAD"), dsum = op.out("BatchSum@GRAD"),
          dsquare = op.out("BatchSquareSum@GRAD"), dscale = op.out("scale_w@GRAD"),
          dbias = op.out("bias@GRAD")](const DeviceContext& c) {
    device::DataNormArgs a = args_of(c, x, slot_dim);
    a.means_in = device::operand(c[means]);
    a.scales_in = device::operand(c[scales]);
    a.scale_w = device::given_operand(c, scale_w);
    a.dy = device::operand(c[dy]);
    a.y = device::needed_operand(c, dx);
    a.dsize = device::needed_operand(c, dsize);
    a.dsum = device::needed_operand(c, dsum);
    a.dsquare = device::needed_operand(c, dsquare);
    a.dscale_w = device::needed_operand(c, dscale);
    a.dbias = device::needed_operand(c, dbias);
    a.epsilon = epsilon;
    c.launch(kernel, a);
  };
};

void infer_grad(InferContext& c) {
  check_columns(c);
  AB_CHECK(!c.attr<bool>("enable_scale_and_shift") || c.has_in("scale_w"), InvalidArgument,
           "scale_w must be given with enable_scale_and_shift");
  check_vectors(c, {"Means", "Scales", "scale_w"});
  check_same(c, "X", "Y@GRAD");
  grad_as(c, "X@GRAD", "X");
  for (const char* slot : {"BatchSize", "BatchSum", "BatchSquareSum", "BatchSize@GRAD", "BatchSum@GRAD",
                           "BatchSquareSum@GRAD", "scale_w@GRAD", "bias@GRAD"}) {
    grad_as(c, slot, "Means");
  }
}

AB_OP(data_norm)
    .doc("Means = BatchSum / BatchSize, Scales = sqrt(BatchSize / BatchSquareSum), Y = (X - Means) Scales.")
    .in_optional("scale_w", "[C], with enable_scale_and_shift")
    .in_optional("bias", "[C], with enable_scale_and_shift")
    .in("X", "[N, C] float")
    .in("BatchSize", "[C]: number of rows of the statistics")
    .in("BatchSum", "[C]: sum of the rows")
    .in("BatchSquareSum", "[C]: sum of squared distances from the mean")
    .out("Y", "like X")
    .out_intermediate("Means", "[C]")
    .out_intermediate("Scales", "[C]")
    .attr<float>("epsilon", 1e-5f, "added to the sum of squares per row")
    .attr<int32_t>("slot_dim", -1, "number of columns of a slot, whose first one counts its shows; -1: no slots")
    .attr<bool>("enable_scale_and_shift", false, "multiplies Y by scale_w and adds bias")
    .ignores({"use_mkldnn"})
    .ignores("summary_decay_rate", 0.9999999f)
    .ignores("data_layout", std::string("NCHW"))
    .ignores("sync_stats", false)
    .dtype_of_input("X")
    .infer(infer)
    .grad([](GradContext& g) {
      GradOp op = g.op("data_norm_grad");
      for (const char* slot : {"scale_w", "bias"}) {
        op.in(slot, g.in(slot)).out(std::string(slot) + "@GRAD", g.din(slot));
      }
      op.in("X", g.in("X")).in("Means", g.out("Means")).in("Scales", g.out("Scales")).in("Y@GRAD", g.dout("Y"));
      op.out("X@GRAD", g.din("X"));
      for (const char* slot : {"BatchSize", "BatchSum", "BatchSquareSum"}) {
        op.out(slot, g.in(slot)).out(std::string(slot) + "@GRAD", g.din(slot));
      }
    })
    .cpu<float, double>(forward)
    .device<float, double>(queued_forward);

AB_GRAD(data_norm)
    .doc(
        "X@GRAD = Y@GRAD Scales. The other gradients are the contributions of a batch to the statistics: its rows, "
        "their sum, and their squared distances from Means plus epsilon each; averaged over the rows that show a slot.")
    .in_optional("scale_w", "scale_w of data_norm")
    .in_optional("bias", "bias of data_norm")
    .in("X", "X of data_norm")
    .in("Means", "Means of data_norm")
    .in("Scales", "Scales of data_norm")
    .in("Y@GRAD", "like Y")
    .out_named_only("BatchSize", "[C]: unchanged")
    .out_named_only("BatchSum", "[C]: unchanged")
    .out_named_only("BatchSquareSum", "[C]: unchanged")
    .out_optional("X@GRAD", "like X")
    .out_optional("BatchSize@GRAD", "[C]")
    .out_optional("BatchSum@GRAD", "[C]")
    .out_optional("BatchSquareSum@GRAD", "[C]")
    .out_optional("scale_w@GRAD", "[C]")
    .out_optional("bias@GRAD", "[C]")
    .dtype_of_input("X")
    .infer(infer_grad)
    .cpu<float, double>(backward)
    .device<float, double>(queued_backward);

}  // namespace
}  // namespace anabranch::nn::data_norm_op
