#include <algorithm>

#include "ops/device/args_sequence.h"
#include "ops/device/upload.h"
#include "ops/device/zeros.h"
#include "ops/kernels/wide.h"
#include "ops/sequence/offsets.h"
#include "ops/sequence/sequence_pool_loops.h"

namespace anabranch::sequence::sequence_pool_op {
namespace {

constexpr int64_t kGrain = 4096;

Pool pool_of(const std::string& name) {
  if (name == "SUM") return Pool::kSum;
  if (name == "AVERAGE") return Pool::kAverage;
  if (name == "SQRT") return Pool::kSqrt;
  if (name == "MAX") return Pool::kMax;
  if (name == "LAST") return Pool::kLast;
  if (name == "FIRST") return Pool::kFirst;
  AB_THROW(InvalidArgument, "pooltype must be SUM, AVERAGE, SQRT, MAX, LAST or FIRST, got {}", name);
}

Pool pool_of(const ir::Op& op) { return pool_of(op.attr<std::string>("pooltype")); }

void infer(InferContext& c) {
  const Pool pool = pool_of(c.op());
  int64_t rows = kUnknown;
  LoDRef outer;
  if (c.runtime()) {
    const LoD& lod = lod_of(c, "X");
    rows = count(lod.back());
    if (lod.size() > 1) outer = std::make_shared<const LoD>(lod.begin(), lod.end() - 1);
  }
  out_rows(c, "Out", "X", rows);
  set_lod(c, "Out", std::move(outer));
  if (!c.runtime()) c.out("Out").lod_level = std::max(0, c.in("X").lod_level - 1);
  if (c.has_out("MaxIndex")) c.set_out("MaxIndex", pool == Pool::kMax ? c.out("Out").shape : Shape{0}, DType::kInt32);
}

void infer_grad(InferContext& c) {
  infer_gradient(c);
  if (pool_of(c.op()) == Pool::kMax) check_same_shape(c, "Out@GRAD", "MaxIndex");
}

template <class T> Kernel forward(const KernelArgs& op) {
  const In x = op.in("X");
  const Out out = op.out("Out"), max_index = op.out("MaxIndex");
  const Pool pool = pool_of(op.op());
  const T pad = static_cast<T>(op.attr<float>("pad_value"));
  return [=](KernelContext& c) {
    const Offsets& o = offsets(c[x]);
    const int64_t width = c[x].row_elems(), n = count(o);
    const T* from = c[x].data<T>();
    T* to = c[out].mutable_data<T>();
    int32_t* index = pool == Pool::kMax && c.needs(max_index) ? c[max_index].mutable_data<int32_t>() : nullptr;
    const int64_t grain = kGrain * n / std::max<int64_t>(1, c[x].numel()) + 1;
    c.parallel_for(n, grain, [=, &o](int64_t begin, int64_t end) {
      in_wide_vectors([=, &o] {
        for (int64_t s = begin; s < end; ++s) {
          const int64_t first = o[static_cast<size_t>(s)], last = o[static_cast<size_t>(s) + 1];
          T* row = to + s * width;
          if (first == last) {
            std::fill(row, row + width, pad);
            if (index) std::fill(index + s * width, index + (s + 1) * width, -1);
          } else if (pool == Pool::kMax) {
            pool_max(from, first, last, width, row, index ? index + s * width : nullptr);
          } else if (pool == Pool::kFirst || pool == Pool::kLast) {
            const T* taken = from + (pool == Pool::kFirst ? first : last - 1) * width;
            std::copy(taken, taken + width, row);
          } else {
            pool_sum(pool, from + first * width, last - first, width, row);
          }
        }
      });
    });
  };
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("X"), dout = op.in("Out@GRAD"), max_index = op.in("MaxIndex");
  const Out dx = op.out("X@GRAD");
  const Pool pool = pool_of(op.op());
  return [=](KernelContext& c) {
    if (!c.needs(dx)) return;
    const Offsets& o = offsets(c[x]);
    const int64_t width = c[x].row_elems(), n = count(o);
    const T* g = c[dout].data<T>();
    const int32_t* index = pool == Pool::kMax ? c[max_index].data<int32_t>() : nullptr;
    T* to = c[dx].mutable_data<T>();
    const int64_t grain = kGrain * n / std::max<int64_t>(1, c[x].numel()) + 1;
    c.parallel_each(n, grain, [=, &o](int64_t s) {
      const int64_t first = o[static_cast<size_t>(s)], last = o[static_cast<size_t>(s) + 1];
      if (first == last) return;
      if (index) {
        grad_max(g + s * width, index + s * width, first, last, width, to);
      } else {
        grad_sequence(pool, g + s * width, last - first, width, to + first * width);
      }
    });
  };
};

// ---- on devices

device::SequencePooling mode_of(Pool pool) {
  switch (pool) {
    case Pool::kSum: return device::kPoolSum;
    case Pool::kAverage: return device::kPoolAverage;
    case Pool::kSqrt: return device::kPoolSqrt;
    case Pool::kMax: return device::kPoolMax;
    case Pool::kLast: return device::kPoolLast;
    default: return device::kPoolFirst;
  }
}

// x: the tensor with LoD.
device::SequencePoolArgs args_of(Pool pool, const Tensor& x) {
  device::SequencePoolArgs a{};
  a.sequences = count(offsets(x));
  a.rows = x.rows();
  a.width = x.row_elems();
  a.mode = mode_of(pool);
  return a;
}

constexpr auto queued_forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("sequence_pool"), upload = device::Upload(), pool = pool_of(op.op()),
          x = op.in("X"), out = op.out("Out"), max_index = op.out("MaxIndex"),
          pad = static_cast<double>(op.attr<float>("pad_value"))](const DeviceContext& c) mutable {
    device::SequencePoolArgs a = args_of(pool, c[x]);
    a.x = device::operand(c[x]);
    a.offsets = upload.of(c, offsets(c[x]));
    a.y = device::operand(c[out]);
    if (pool == Pool::kMax) a.index = device::needed_operand(c, max_index);
    a.pad = pad;
    c.launch(kernel, a);
  };
};

constexpr auto queued_backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("sequence_pool_grad"), upload = device::Upload(), pool = pool_of(op.op()),
          x = op.in("X"), dout = op.in("Out@GRAD"), max_index = op.in("MaxIndex"),
          dx = op.out("X@GRAD")](const DeviceContext& c) mutable {
    if (!c.needs(dx)) return;
    device::SequencePoolArgs a = args_of(pool, c[x]);
    a.x = device::operand(c[dout]);
    a.offsets = upload.of(c, offsets(c[x]));
    if (pool == Pool::kMax) a.index_in = device::operand(c[max_index]);
    a.y = device::operand(c[dx]);
    c.launch(kernel, a);
  };
};

// MaxIndex is read only for MAX.
void differentiate(GradContext& g) {
  auto op = g.op("sequence_pool_grad");
  if (pool_of(g.forward()) == Pool::kMax) op.in("MaxIndex", g.out("MaxIndex"));
  op.in("Out@GRAD", g.dout("Out")).in("X", g.in("X")).out("X@GRAD", g.din("X"));
}

AB_OP(sequence_pool)
    .doc(
        "Out = one row per sequence of the innermost level: the SUM of its rows, their AVERAGE, their sum divided by "
        "the square root of their number (SQRT), the MAX of each column, the FIRST or the LAST row; pad_value for an "
        "empty sequence.")
    .in("X", "[rows, ...] float with LoD")
    .out("Out", "[sequences, ...]; the outer levels group its rows")
    .out_intermediate("MaxIndex",
                      "like Out, int32: the row of each maximum, -1 for an empty sequence; empty unless MAX")
    .ignores({"is_test"})
    .attr<std::string>("pooltype", "AVERAGE", "SUM, AVERAGE, SQRT, MAX, LAST or FIRST",
                       [](const std::string& v) { pool_of(v); })
    .attr<float>("pad_value", 0.0f, "value for empty sequences")
    .infer(infer)
    .grad_reads({"X"}, {"MaxIndex"})
    .grad(differentiate)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op); })
    .device<float, double, float16, bfloat16>(queued_forward);

AB_GRAD(sequence_pool)
    .doc("X@GRAD: each sequence's gradient, distributed over its rows by their weights in Out.")
    .in_optional("MaxIndex", "as in sequence_pool, for MAX")
    .grad_lod("X@GRAD", "X")
    .dtype_of_input("Out@GRAD")
    .infer(infer_grad)
    .cpu<float, double>(backward)
    .device<float, double, float16, bfloat16>(queued_backward);

}  // namespace
}  // namespace anabranch::sequence::sequence_pool_op
