#include "ops/device/args_sequence.h"
#include "ops/device/upload.h"
#include "ops/nn/softmax_block.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::sequence_softmax_op {
namespace {

// Calls fn(first, end) for runs of sequences, on idle workers.
template <class Fn> void each_run(const KernelContext& c, const Offsets& o, int64_t rows, Fn&& fn) {
  const int64_t sequences = count(o);
  c.parallel_for(sequences, kMathGrain / (rows / std::max<int64_t>(1, sequences) + 1) + 1, fn);
}

template <class Fn> void each_sequence(const Offsets& o, int64_t begin, int64_t end, Fn&& fn) {
  for (int64_t s = begin; s < end; ++s) {
    const int64_t first = o[static_cast<size_t>(s)], length = o[static_cast<size_t>(s) + 1] - first;
    if (length > 0) fn(first, length);
  }
}

void softmax_run(const Offsets& o, int64_t begin, int64_t end, const double* from, double* to) {
  each_sequence(o, begin, end, [=](int64_t first, int64_t length) {
    softmax_row(from + first, length, to + first, -std::numeric_limits<double>::infinity());
  });
}

// Short sequences share the vectors of one loop over all exponentials.
void softmax_run(const Offsets& o, int64_t begin, int64_t end, const float* from, float* to) {
  each_sequence(o, begin, end, [=](int64_t first, int64_t length) {
    const float* x = from + first;
    float top = x[0];
    for (int64_t k = 1; k < length; ++k) top = x[k] > top ? x[k] : top;
    for (int64_t k = 0; k < length; ++k) to[first + k] = x[k] - top;
  });
  const int64_t first = o[static_cast<size_t>(begin)], last = o[static_cast<size_t>(end)];
  simd::exp(to + first, to + first, last - first);
  each_sequence(o, begin, end, [=](int64_t at, int64_t length) {
    float sum = 0;
    if (length > kShortRow) {
      sum = simd::sum(to + at, length);
    } else {
      for (int64_t k = 0; k < length; ++k) sum += to[at + k];
    }
    const float factor = 1.0f / sum;
    for (int64_t k = 0; k < length; ++k) to[at + k] *= factor;
  });
}

AB_OP(sequence_softmax)
    .doc("Softmax of X over the rows of each sequence of the innermost level.")
    .in("X", "[rows, 1] float, with LoD")
    .out("Out", "like X")
    .ignores({"use_cudnn", "data_format"})
    .infer([](InferContext& c) {
      const Shape& x = c.in("X").shape;
      AB_CHECK(x.rank() >= 1 && (!x.known() || x.numel() == x[0]), InvalidArgument, "X must be [rows, 1], got {}",
               x.str());
      if (c.runtime()) lod_of(c, "X");
      c.same_as("Out", "X");
    })
    .grad_reads({"X"}, {"Out"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        const auto& o = offsets(c[x]);
        each_run(c, o, c[x].numel(),
                 [&o, from, to](int64_t begin, int64_t end) { softmax_run(o, begin, end, from, to); });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("sequence_softmax"), upload = device::Upload(), x = op.in("X"),
              out = op.out("Out")](const DeviceContext& c) mutable {
        const Offsets& o = offsets(c[x]);
        c.launch(kernel, device::SequenceSoftmaxArgs{
                             device::operand(c[x]), {}, upload.of(c, o), device::operand(c[out]), count(o)});
      };
    });

AB_GRAD(sequence_softmax)
    .doc("X@GRAD = Out (Out@GRAD - sum(Out Out@GRAD)) over each sequence.")
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Out"), dy = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        const T *value = c[y].data<T>(), *g = c[dy].data<T>();
        T* to = c[dx].mutable_data<T>();
        const auto& o = offsets(c[x]);
        each_run(c, o, c[x].numel(), [&o, value, g, to](int64_t begin, int64_t end) {
          each_sequence(o, begin, end, [=](int64_t first, int64_t length) {
            softmax_grad_block<T>(value + first, g + first, length, 1, to + first);
          });
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("sequence_softmax_grad"), upload = device::Upload(), x = op.in("X"),
              y = op.in("Out"), dy = op.in("Out@GRAD"), dx = op.out("X@GRAD")](const DeviceContext& c) mutable {
        if (!c.needs(dx)) return;
        const Offsets& o = offsets(c[x]);
        c.launch(kernel, device::SequenceSoftmaxArgs{device::operand(c[y]), device::operand(c[dy]), upload.of(c, o),
                                                     device::operand(c[dx]), count(o)});
      };
    });

}  // namespace
}  // namespace anabranch::sequence::sequence_softmax_op
