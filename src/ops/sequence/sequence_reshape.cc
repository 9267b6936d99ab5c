// Divides the numbers of each sequence into rows of another width.
#include <cstring>

#include "ops/sequence/offsets.h"

namespace anabranch::sequence::sequence_reshape_op {
namespace {

Offsets narrowed(const Offsets& o, int64_t width, int64_t new_dim) {
  Offsets made{0};
  for (int64_t s = 0; s < count(o); ++s) {
    const int64_t numbers = (o[static_cast<size_t>(s) + 1] - o[static_cast<size_t>(s)]) * width;
    AB_CHECK(numbers % new_dim == 0, InvalidArgument, "new_dim must divide the {} numbers of sequence {}, got {}",
             numbers, s, new_dim);
    made.push_back(made.back() + numbers / new_dim);
  }
  return made;
}

void infer(InferContext& c) {
  check_rank(c, "X", 2, 2);
  const int64_t new_dim = c.attr<int32_t>("new_dim");
  const Meta& x = c.in("X");
  if (!c.runtime()) {
    const int64_t numbers = x.shape.numel();
    c.set_out("Out", Shape{numbers > 0 && numbers % new_dim == 0 ? numbers / new_dim : kUnknown, new_dim}, x.dtype);
    c.out("Out").lod_level = 1;  // as Fluid 1.8.5 declares it
    return;
  }
  const LoD& lod = lod_of(c, "X");
  AB_CHECK(lod.size() == 1, InvalidArgument, "X must have one LoD level, got {}", lod.size());
  Offsets made = narrowed(lod[0], x.shape[1], new_dim);
  c.set_out("Out", Shape{made.back(), new_dim}, x.dtype);
  set_lod(c, "Out", one_level(std::move(made)));
}

AB_OP(sequence_reshape)
    .doc("Reshapes the numbers of each sequence, in order, to rows of width new_dim.")
    .in("X", "[rows, width], with one LoD level; new_dim must divide the number of elements of each sequence")
    .out("Out", "[rows width / new_dim, new_dim], dtype of X, with the same number of sequences")
    .attr<int32_t>("new_dim", 1, "width of Out, at least 1",
                   [](int32_t v) { AB_CHECK(v >= 1, InvalidArgument, "new_dim must be at least 1, got {}", v); })
    .infer(infer)
    .grad_reads({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        std::memcpy(c[out].mutable_raw(), c[x].raw(), c[x].bytes());
      };
    });

AB_GRAD(sequence_reshape)
    .doc("X@GRAD = Out@GRAD in the shape of X.")
    .grad_lod("X@GRAD", "X")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        if (c.needs(dx)) std::memcpy(c[dx].mutable_raw(), c[dout].raw(), c[dout].bytes());
      };
    });

}  // namespace
}  // namespace anabranch::sequence::sequence_reshape_op
