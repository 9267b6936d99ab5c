#include "ops/nn/softmax_block.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence {
namespace {

template <class Fn> void each_sequence(const Offsets& o, Fn&& fn) {
  for (int64_t s = 0; s < count(o); ++s) {
    const int64_t first = o[static_cast<size_t>(s)], length = o[static_cast<size_t>(s) + 1] - first;
    if (length > 0) fn(first, length);
  }
}

AB_OP(sequence_softmax)
    .doc("Softmax over the rows of each sequence of the innermost level.")
    .in("X", "[rows, 1] float with sequences")
    .out("Out", "as X")
    .ignores({"use_cudnn", "data_format"})
    .infer([](InferContext& c) {
      check_tensor(c, "X");
      const Shape& x = c.in("X").shape;
      AB_CHECK(x.rank() >= 1 && (!x.known() || x.numel() == x[0]), InvalidArgument, "X must be [rows, 1], got {}",
               x.str());
      if (c.runtime()) lod_of(c, "X");
      c.same_as("Out", "X");
    })
    .grad_reads({"X"}, {"Out"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        T* to = c[out].template mutable_data<T>();
        each_sequence(offsets(c[x]), [=](int64_t first, int64_t length) {
          softmax_row(from + first, length, to + first, -std::numeric_limits<double>::infinity());
        });
      };
    });

AB_GRAD(sequence_softmax)
    .doc("X@GRAD = Out (Out@GRAD - sum(Out Out@GRAD)) over each sequence.")
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), y = op.in("Out"), dy = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.wants(dx)) return;
        const T *value = c[y].data<T>(), *g = c[dy].data<T>();
        T* to = c[dx].template mutable_data<T>();
        each_sequence(offsets(c[x]), [=](int64_t first, int64_t length) {
          softmax_grad_block<T>(value + first, g + first, length, 1, to + first);
        });
      };
    });

}  // namespace
}  // namespace anabranch::sequence
