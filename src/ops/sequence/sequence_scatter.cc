// Numbers added to rows at the places that sequences of ids name.
#include <algorithm>

#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence {
namespace {

// Sequence i of Ids belongs to row i of X; Updates has a number for each id.
void check_places(const InferContext& c) {
  check_tensor(c, "Ids");
  const Meta& ids = c.in("Ids");
  AB_CHECK(ids.dtype == DType::kInt32 || ids.dtype == DType::kInt64, InvalidArgument,
           "{}: Ids holds {}, expected int64", op_name(c), dtype_name(ids.dtype));
  if (!c.runtime()) return;
  AB_CHECK(ids.shape.numel() == ids.shape[0], ShapeMismatch, "{}: Ids is {}, expected [rows, 1]", op_name(c),
           ids.shape.str());
}

void check_sequences(const InferContext& c, int64_t rows) {
  const LoD& lod = lod_of(c, "Ids");
  AB_CHECK(lod.size() == 1 && count(lod[0]) == rows, ShapeMismatch,
           "{}: Ids has {} sequences, expected one for each of the {} rows", op_name(c), count(lod.back()), rows);
}

// fn(flat place in X, number of the id)
template <class Fn> void each_place(const std::string& op, const Tensor& ids, Tensor* scratch, int64_t width, Fn&& fn) {
  const Offsets& o = offsets(ids);
  const int64_t* id = as_int64(ids, scratch);
  check_ids(op.c_str(), id, ids.numel(), width);
  for (int64_t r = 0; r < count(o); ++r) {
    for (int64_t k = o[static_cast<size_t>(r)]; k < o[static_cast<size_t>(r) + 1]; ++k) fn(r * width + id[k], k);
  }
}

AB_OP(sequence_scatter)
    .doc("Out = X, and Out[i, id] += u for each id of sequence i of Ids and its u of Updates.")
    .in("X", "[N, D] numbers")
    .in("Ids", "[rows, 1] int64 in [0, D), N sequences")
    .in("Updates", "[rows, 1], dtype of X")
    .out("Out", "as X")
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_rank(c, "X", 2, 2);
      check_places(c);
      check_same_dtype(c, "Updates", "X");
      if (c.runtime()) {
        check_sequences(c, c.in("X").shape[0]);
        check_numel(c, "Updates", c.in("Ids").shape.numel());
      }
      c.same_shape("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("sequence_scatter_grad")
          .in("Ids", g.in("Ids"))
          .in("Updates", g.in("Updates"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"))
          .out("Updates@GRAD", g.din("Updates"));
    })
    .cpu<float, double, int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), ids = op.in("Ids"), updates = op.in("Updates"), out = op.out("Out"),
              what = op.op().type + ": Ids", scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const T *from = c[x].data<T>(), *u = c[updates].data<T>();
        T* to = c[out].template mutable_data<T>();
        std::copy(from, from + c[x].numel(), to);
        each_place(what, c[ids], scratch.get(), c[x].shape()[1], [=](int64_t at, int64_t k) { to[at] += u[k]; });
      };
    });

AB_OP(sequence_scatter_grad)
    .doc("X@GRAD = Out@GRAD; Updates@GRAD: the numbers of Out@GRAD at the places.")
    .in("Ids", "as of sequence_scatter")
    .in("Updates", "for its shape and sequences")
    .in("Out@GRAD", "as Out")
    .out_optional("X@GRAD", "as X")
    .out_optional("Updates@GRAD", "as Updates")
    .dtype_of_input("Out@GRAD")
    .infer([](InferContext& c) {
      check_rank(c, "Out@GRAD", 2, 2);
      check_places(c);
      check_same_dtype(c, "Updates", "Out@GRAD");
      if (c.runtime()) {
        check_sequences(c, c.in("Out@GRAD").shape[0]);
        check_numel(c, "Updates", c.in("Ids").shape.numel());
      }
      grad_as(c, "X@GRAD", "Out@GRAD");
      grad_as(c, "Updates@GRAD", "Updates");
    })
    .no_grad(kOnce)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [ids = op.in("Ids"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), du = op.out("Updates@GRAD"),
              what = op.op().type + ": Ids", scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const T* g = c[dout].data<T>();
        if (c.wants(dx)) std::copy(g, g + c[dout].numel(), c[dx].template mutable_data<T>());
        if (!c.wants(du)) return;
        T* to = c[du].template mutable_data<T>();
        each_place(what, c[ids], scratch.get(), c[dout].shape()[1], [=](int64_t at, int64_t k) { to[k] = g[at]; });
      };
    });

}  // namespace
}  // namespace anabranch::sequence
