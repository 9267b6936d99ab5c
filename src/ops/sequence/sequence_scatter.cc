// Adds numbers to rows at the positions given by sequences of ids.
#include <algorithm>

#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::sequence_scatter_op {
namespace {

// Sequence i of Ids belongs to row i of the tensor in `slot`; Updates has one number per id.
void check_places(const InferContext& c, const char* slot) {
  check_rank(c, slot, 2, 2);
  check_ids_dtype(c, "Ids");
  check_same_dtype(c, "Updates", slot);
  if (!c.runtime()) return;
  const int64_t rows = c.in(slot).shape[0];
  const LoD& lod = lod_of(c, "Ids");
  AB_CHECK(lod.size() == 1 && count(lod[0]) == rows, ShapeMismatch,
           "Ids must have a sequence for each of the {} rows, got {}", rows, count(lod.back()));
  check_number_per_row(c, "Ids", c.in("Ids").shape[0]);
  check_number_per_row(c, "Updates", c.in("Ids").shape[0]);
}

// Calls fn(flat index in X, number of the id).
template <class Fn> void each_place(const Tensor& ids, Tensor* scratch, int64_t width, Fn&& fn) {
  const Offsets& o = offsets(ids);
  const int64_t* id = as_int64(ids, scratch);
  check_ids("Ids", id, ids.numel(), width);
  for (int64_t r = 0; r < count(o); ++r) {
    for (int64_t k = o[static_cast<size_t>(r)]; k < o[static_cast<size_t>(r) + 1]; ++k) fn(r * width + id[k], k);
  }
}

AB_OP(sequence_scatter)
    .doc(
        "Adds numbers to elements of X: Out = X, plus u at Out[i, id] for each id of sequence i of Ids and its number "
        "u in Updates.")
    .in("X", "[N, D] numbers")
    .in("Ids", "[rows, 1] int32 or int64, with N sequences: ids in [0, D)")
    .in("Updates", "[rows, 1], dtype of X")
    .out("Out", "like X")
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_places(c, "X");
      c.same_shape("Out", "X");
    })
    .grad_reads({"Ids", "Updates"})
    .grad_to({"X", "Updates"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), ids = op.in("Ids"), updates = op.in("Updates"), out = op.out("Out"),
              scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const T *from = c[x].data<T>(), *u = c[updates].data<T>();
        T* to = c[out].mutable_data<T>();
        std::copy(from, from + c[x].numel(), to);
        each_place(c[ids], scratch.get(), c[x].shape()[1], [=](int64_t at, int64_t k) { to[at] += u[k]; });
      };
    });

AB_GRAD(sequence_scatter)
    .doc("X@GRAD = Out@GRAD; Updates@GRAD = the numbers of Out@GRAD at these positions.")
    .dtype_of_input("Out@GRAD")
    .infer([](InferContext& c) {
      check_places(c, "Out@GRAD");
      grad_as(c, "X@GRAD", "Out@GRAD");
      grad_as(c, "Updates@GRAD", "Updates");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [ids = op.in("Ids"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), du = op.out("Updates@GRAD"),
              scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const T* g = c[dout].data<T>();
        if (c.needs(dx)) std::copy(g, g + c[dout].numel(), c[dx].mutable_data<T>());
        if (!c.needs(du)) return;
        T* to = c[du].mutable_data<T>();
        each_place(c[ids], scratch.get(), c[dout].shape()[1], [=](int64_t at, int64_t k) { to[k] = g[at]; });
      };
    });

}  // namespace
}  // namespace anabranch::sequence::sequence_scatter_op
