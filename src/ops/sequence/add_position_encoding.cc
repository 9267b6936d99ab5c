// Adds the position of each row in its sequence, encoded as sines and cosines of descending frequencies.
#include <algorithm>
#include <cmath>

#include "ops/device/args_math.h"
#include "ops/device/args_sequence.h"
#include "ops/device/upload.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::add_position_encoding_op {
namespace {

constexpr int64_t kGrain = 8192;

// The encodings of the first positions, computed on first use.
class Encodings {
 public:
  // [rows, width]: sines in the first half of the columns, cosines in the second.
  const double* get(int64_t rows, int64_t width) {
    if (width != width_) made_ = 0, width_ = width;
    table_.resize(static_cast<size_t>(std::max(rows, made_) * width));
    const int64_t half = width / 2;
    for (; made_ < rows; ++made_) {
      double* row = table_.data() + made_ * width;
      for (int64_t k = 0; k < half; ++k) {
        const double power = half > 1 ? static_cast<double>(k) / static_cast<double>(half - 1) : 1.0;
        const double angle = static_cast<double>(made_) / std::pow(10000.0, power);
        row[k] = std::sin(angle);
        row[half + k] = std::cos(angle);
      }
    }
    return table_.data();
  }

 private:
  std::vector<double> table_;
  int64_t made_ = 0, width_ = 0;
};

void infer(InferContext& c) {
  check_rank(c, "X", 2, 3);
  const Shape& x = c.in("X").shape;
  const int64_t width = x[x.rank() - 1];
  AB_CHECK(width < 0 || width % 2 == 0, InvalidArgument, "X must have an even number of columns, got {}", x.str());
  if (c.runtime() && x.rank() == 2) {
    AB_CHECK(lod_of(c, "X").size() == 1, InvalidArgument, "X must have one LoD level, got {}", lod_of(c, "X").size());
  }
  c.same_as("Out", "X");
}

// Calls fn(first row, rows) for each sequence.
template <class Fn> void each_sequence(const Tensor& x, Fn&& fn) {
  if (x.shape().rank() == 3) {
    for (int64_t s = 0; s < x.shape()[0]; ++s) fn(s * x.shape()[1], x.shape()[1]);
    return;
  }
  const Offsets& o = offsets(x);
  for (size_t s = 1; s < o.size(); ++s) fn(o[s - 1], o[s] - o[s - 1]);
}

// ---- on devices

constexpr auto queued_forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("position_encoding"), starts = device::Upload(), table = device::Upload(),
          encodings = Encodings(), x = op.in("X"), out = op.out("Out"), alpha = op.attr<float>("alpha"),
          beta = op.attr<float>("beta")](const DeviceContext& c) mutable {
    const Shape& shape = c[x].shape();
    Offsets o{0};
    int64_t longest = 0;
    each_sequence(c[x], [&](int64_t first, int64_t rows) {
      o.push_back(first + rows);
      longest = std::max(longest, rows);
    });
    device::EncodingArgs a{};
    a.width = shape[shape.rank() - 1];
    a.x = device::operand(c[x]);
    a.offsets = starts.of(c, o);
    const double* made = encodings.get(longest, a.width);
    a.table = table.of(c, std::vector<double>(made, made + longest * a.width));
    a.y = device::operand(c[out]);
    a.sequences = count(o);
    a.rows = o.back();
    a.alpha = static_cast<double>(alpha);
    a.beta = static_cast<double>(beta);
    c.launch(kernel, a);
  };
};

constexpr auto queued_backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("scalar/scale"), alpha = op.attr<float>("alpha"), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD")](const DeviceContext& c) {
    device::ScalarArgs a{};
    a.x = device::operand(c[dout]);
    a.y = device::operand(c[dx]);
    a.n = c[dout].numel();
    a.p[0] = static_cast<double>(alpha);
    a.flags = 1;  // adds a bias of 0 after scaling
    c.launch(kernel, a);
  };
};

AB_OP(add_position_encoding)
    .doc(
        "Adds position encodings: Out = alpha X + beta P. Row t of a sequence has P[k] = sin(t / 10000^(k / (D/2 - "
        "1))) in the first half of the D columns, and the cosines of the same angles in the second half.")
    .source("Vaswani et al., Attention is all you need, NIPS 2017, section 3.5")
    .in("X", "[rows, D] float, with LoD, or [batch, rows, D]; D must be even")
    .out("Out", "like X")
    .may_share("X", "Out")
    .attr<float>("alpha", 1.0F, "factor for X")
    .attr<float>("beta", 1.0F, "factor for the encoding")
    .infer(infer)
    .grad_reads({})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const double alpha = op.attr<float>("alpha"), beta = op.attr<float>("beta");
      return [=, x = op.in("X"), out = op.out("Out"), encodings = std::make_shared<Encodings>()](KernelContext& c) {
        const Shape& shape = c[x].shape();
        const int64_t width = shape[shape.rank() - 1];
        int64_t longest = 0;
        each_sequence(c[x], [&](int64_t, int64_t rows) { longest = std::max(longest, rows); });
        const double* table = encodings->get(longest, width);
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        each_sequence(c[x], [&](int64_t begin, int64_t rows) {
          c.parallel_for(rows * width, kGrain, [&](int64_t first, int64_t last) {
            const T* own = from + begin * width;
            for (int64_t i = first; i < last; ++i) {
              to[begin * width + i] = static_cast<T>(alpha * own[i] + beta * table[i]);
            }
          });
        });
      };
    })
    .device<float, double, float16, bfloat16>(queued_forward);

AB_GRAD(add_position_encoding)
    .doc("X@GRAD = alpha Out@GRAD.")
    .infer([](InferContext& c) { c.same_shape("X@GRAD", "Out@GRAD"); })
    .may_share("Out@GRAD", "X@GRAD")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const T alpha = static_cast<T>(op.attr<float>("alpha"));
      return [=, dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const T* g = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        c.parallel_each(c[dout].numel(), kGrain, [&](int64_t i) { to[i] = alpha * g[i]; });
      };
    })
    .device<float, double, float16, bfloat16>(queued_backward);

}  // namespace
}  // namespace anabranch::sequence::add_position_encoding_op
