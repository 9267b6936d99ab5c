#include "ops/nn/softmax_block.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence {
namespace {

void check_column(const InferContext& c, const char* slot) {
  const Shape& x = c.in(slot).shape;
  check_tensor(c, slot);
  AB_CHECK(x.rank() >= 1 && (!x.known() || x.numel() == x[0]), InvalidArgument, "{}: {} is {}, expected [rows, 1]",
           op_name(c), slot, x.str());
}

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
    .attr<bool>("use_cudnn", false, "accepted, without effect")
    .attr<std::string>("data_format", "AnyLayout", "accepted, without effect")
    .infer([](InferContext& c) {
      check_column(c, "X");
      if (c.runtime()) lod_of(c, "X");
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("sequence_softmax_grad")
          .in("Out", g.out("Out"))
          .in("Out@GRAD", g.dout("Out"))
          .in("X", g.in("X"))
          .out("X@GRAD", g.din("X"));
    })
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

AB_OP(sequence_softmax_grad)
    .doc("X@GRAD = Out (Out@GRAD - sum(Out Out@GRAD)) over each sequence.")
    .in("Out", "from the forward op")
    .in("Out@GRAD", "as Out")
    .in("X", "for its sequences")
    .out("X@GRAD", "as X")
    .infer([](InferContext& c) {
      check_column(c, "X");
      if (c.runtime()) lod_of(c, "X");
      check_same(c, "X", "Out");
      check_same(c, "X", "Out@GRAD");
      grad_as(c, "X@GRAD", "X", "X");
    })
    .no_grad(kOnce)
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
