// Ops that copy whole rows to other places: reverse, concat, slice. A plan lists, for each run of output rows, where it
// comes from; the gradient copies the same runs back.
#include <algorithm>
#include <cstring>

#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence {
namespace {

size_t row_bytes(const Tensor& t) { return static_cast<size_t>(t.row_elems()) * dtype_size(t.dtype()); }

const char* row(const Tensor& t, int64_t r) {
  return static_cast<const char*>(t.raw()) + static_cast<size_t>(r) * row_bytes(t);
}
char* row(Tensor& t, int64_t r) { return static_cast<char*>(t.mutable_raw()) + static_cast<size_t>(r) * row_bytes(t); }

// ---- sequence_reverse

AB_OP(sequence_reverse)
    .doc("The rows of each sequence of the innermost level in the opposite order.")
    .in("X", "[rows, ...] with sequences")
    .out("Y", "as X")
    .infer([](InferContext& c) {
      check_tensor(c, "X");
      if (c.runtime()) lod_of(c, "X");
      c.same_as("Y", "X");
    })
    .grad([](GradContext& g) { g.op("sequence_reverse").in("X", g.dout("Y")).out("Y", g.din("X")); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.out("Y")](KernelContext& c) {
        if (!c.wants(y)) return;
        const Offsets& o = offsets(c[x]);
        const size_t bytes = row_bytes(c[x]);
        for (int64_t s = 0; s < count(o); ++s) {
          const int64_t first = o[static_cast<size_t>(s)], last = o[static_cast<size_t>(s) + 1];
          for (int64_t r = first; r < last; ++r) std::memcpy(row(c[y], first + last - 1 - r), row(c[x], r), bytes);
        }
      };
    });

// ---- sequence_concat

// fn(input, its first row, rows, first output row) for the sequences in output order.
template <class LodOf, class Fn> void each_joined(int inputs, LodOf&& lod_of_input, Fn&& fn) {
  int64_t at = 0;
  for (int64_t s = 0; s < count(lod_of_input(0)); ++s) {
    for (int i = 0; i < inputs; ++i) {
      const Offsets& o = lod_of_input(i);
      const int64_t first = o[static_cast<size_t>(s)], rows = o[static_cast<size_t>(s) + 1] - first;
      fn(i, first, rows, at);
      at += rows;
    }
  }
}

void check_joined(const InferContext& c) {
  AB_CHECK(c.n_in("X") > 0, InvalidArgument, "{}: X lists no variables", op_name(c));
  const Meta& first = c.in("X");
  AB_CHECK(first.shape.rank() > 0, InvalidArgument, "{}: X has no axes", op_name(c));
  for (int i = 0; i < c.n_in("X"); ++i) {
    const Meta& m = c.in("X", i);
    Shape same_rows = m.shape;
    if (same_rows.rank()) same_rows.set(0, first.shape[0]);
    AB_CHECK(m.dtype == first.dtype && compatible(same_rows, first.shape), ShapeMismatch,
             "{}: X[{}] is {} of {}, X[0] is {} of {}; they may differ in the number of rows only", op_name(c), i,
             m.shape.str(), dtype_name(m.dtype), first.shape.str(), dtype_name(first.dtype));
    if (!c.runtime()) continue;
    AB_CHECK(count(lod_of(c, "X", i).back()) == count(lod_of(c, "X").back()), ShapeMismatch,
             "{}: X[{}] has {} sequences, X[0] has {}", op_name(c), i, count(lod_of(c, "X", i).back()),
             count(lod_of(c, "X").back()));
  }
}

Offsets joined_offsets(const InferContext& c) {
  Offsets made(lod_of(c, "X").back().size(), 0);
  for (int i = 0; i < c.n_in("X"); ++i) {
    const Offsets& o = lod_of(c, "X", i).back();
    for (size_t s = 0; s < made.size(); ++s) made[s] += o[s];
  }
  return made;
}

void infer_concat(InferContext& c) {
  check_joined(c);
  if (!c.runtime()) {
    out_rows(c, "Out", "X", kUnknown);
    c.out("Out").lod_level = std::max(1, c.in("X").lod_level);
    return;
  }
  Offsets made = joined_offsets(c);
  out_rows(c, "Out", "X", made.back());
  set_lod(c, "Out", one_level(std::move(made)));
}

void infer_concat_grad(InferContext& c) {
  check_joined(c);
  for (int i = 0; i < c.n_in("X"); ++i) {
    Meta& m = c.out("X@GRAD", i);
    m = c.in("X", i);
    m.value = nullptr;
  }
  if (!c.runtime()) return;
  const int64_t rows = joined_offsets(c).back();
  Shape wanted = c.in("X").shape;
  wanted.set(0, rows);
  AB_CHECK(wanted == c.in("Out@GRAD").shape && c.in("Out@GRAD").dtype == c.in("X").dtype, ShapeMismatch,
           "sequence_concat_grad: Out@GRAD is {}, expected {}", c.in("Out@GRAD").shape.str(), wanted.str());
}

AB_OP(sequence_concat)
    .doc("Sequence i of Out is sequence i of every input, one behind the other.")
    .in_list("X", "[rows, ...] each, with equally many sequences")
    .out("Out", "[sum of rows, ...]")
    .infer(infer_concat)
    .grad([](GradContext& g) {
      g.op("sequence_concat_grad").in("X", g.in("X")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const size_t bytes = row_bytes(c[out]);
        each_joined(
            x.count, [&](int i) -> const Offsets& { return offsets(c.at(x, i)); },
            [&](int i, int64_t first, int64_t rows, int64_t at) {
              std::memcpy(row(c[out], at), row(c.at(x, i), first), static_cast<size_t>(rows) * bytes);
            });
      };
    });

AB_OP(sequence_concat_grad)
    .doc("Each input's gradient is its rows of Out@GRAD.")
    .in_list("X", "for their sequences")
    .in("Out@GRAD", "as Out")
    .out_list("X@GRAD", "as X")
    .infer(infer_concat_grad)
    .no_grad(kOnce)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const size_t bytes = row_bytes(c[dout]);
        each_joined(
            x.count, [&](int i) -> const Offsets& { return offsets(c.at(x, i)); },
            [&](int i, int64_t first, int64_t rows, int64_t at) {
              if (!c.wants(dx, i)) return;
              std::memcpy(row(c.at(dx, i), first), row(c[dout], at), static_cast<size_t>(rows) * bytes);
            });
      };
    });

// ---- sequence_slice

// Offset and Length of each sequence, inside it.
struct Cuts {
  Tensor scratch[2];
  const int64_t *offset, *length;
  Cuts(const std::string& op, const Tensor& offsets_in, const Tensor& lengths, const Offsets& o)
      : offset(as_int64(offsets_in, &scratch[0])), length(as_int64(lengths, &scratch[1])) {
    AB_CHECK(offsets_in.numel() == count(o) && lengths.numel() == count(o), ShapeMismatch,
             "{}: X has {} sequences, Offset is {}, Length is {}", op, count(o), offsets_in.shape().str(),
             lengths.shape().str());
    for (int64_t s = 0; s < count(o); ++s) {
      const int64_t rows = o[static_cast<size_t>(s) + 1] - o[static_cast<size_t>(s)];
      AB_CHECK(offset[s] >= 0 && length[s] > 0 && offset[s] <= rows && length[s] <= rows - offset[s], InvalidArgument,
               "{}: Offset {} and Length {} do not fit into sequence {} of {} rows", op, offset[s], length[s], s, rows);
    }
  }
};

Offsets sliced_offsets(const InferContext& c) {
  const Offsets& o = lod_of(c, "X").back();
  const Cuts cuts(c.op().type, *c.in("Offset").value, *c.in("Length").value, o);
  Offsets made{0};
  for (int64_t s = 0; s < count(o); ++s) made.push_back(made.back() + cuts.length[s]);
  return made;
}

void check_slice(const InferContext& c) {
  check_tensor(c, "X");
  for (const char* slot : {"Offset", "Length"}) {
    check_tensor(c, slot);
    const DType d = c.in(slot).dtype;
    AB_CHECK(d == DType::kInt64 || d == DType::kInt32, InvalidArgument, "{}: {} holds {}, expected int64", op_name(c),
             slot, dtype_name(d));
  }
}

void infer_slice(InferContext& c) {
  check_slice(c);
  if (!c.runtime()) {
    out_rows(c, "Out", "X", kUnknown);
    c.out("Out").lod_level = std::max(1, c.in("X").lod_level);
    return;
  }
  Offsets made = sliced_offsets(c);
  out_rows(c, "Out", "X", made.back());
  set_lod(c, "Out", one_level(std::move(made)));
}

template <class Fn> void each_cut(KernelContext& c, const std::string& op, In x, In offset, In length, Fn&& fn) {
  const Offsets& o = offsets(c[x]);
  const Cuts cuts(op, c[offset], c[length], o);
  int64_t at = 0;
  for (int64_t s = 0; s < count(o); ++s) {
    fn(o[static_cast<size_t>(s)] + cuts.offset[s], cuts.length[s], at);
    at += cuts.length[s];
  }
}

AB_OP(sequence_slice)
    .doc("A piece of each sequence: Length rows from row Offset on.")
    .in("X", "[rows, ...] with sequences")
    .in("Offset", "[sequences, 1] int64")
    .in("Length", "[sequences, 1] int64")
    .out("Out", "[sum of Length, ...]")
    .effects(kDynamic)
    .infer(infer_slice)
    .grad([](GradContext& g) {
      g.op("sequence_slice_grad")
          .in("X", g.in("X"))
          .in("Offset", g.in("Offset"))
          .in("Length", g.in("Length"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), offset = op.in("Offset"), length = op.in("Length"), out = op.out("Out"),
              type = op.op().type](KernelContext& c) {
        const size_t bytes = row_bytes(c[x]);
        each_cut(c, type, x, offset, length, [&](int64_t from, int64_t rows, int64_t at) {
          std::memcpy(row(c[out], at), row(c[x], from), static_cast<size_t>(rows) * bytes);
        });
      };
    });

AB_OP(sequence_slice_grad)
    .doc("Out@GRAD at the places of the pieces, zero elsewhere.")
    .in("X", "for its shape and sequences")
    .in("Offset", "as in the forward op")
    .in("Length", "as in the forward op")
    .in("Out@GRAD", "as Out")
    .out("X@GRAD", "as X")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      check_slice(c);
      if (c.runtime()) {
        Shape wanted = c.in("X").shape;
        wanted.set(0, sliced_offsets(c).back());
        AB_CHECK(wanted == c.in("Out@GRAD").shape && c.in("Out@GRAD").dtype == c.in("X").dtype, ShapeMismatch,
                 "sequence_slice_grad: Out@GRAD is {}, expected {}", c.in("Out@GRAD").shape.str(), wanted.str());
      }
      grad_as(c, "X@GRAD", "X", "X");
    })
    .no_grad(kOnce)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), offset = op.in("Offset"), length = op.in("Length"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD"), type = op.op().type](KernelContext& c) {
        if (!c.wants(dx)) return;
        std::memset(c[dx].mutable_raw(), 0, c[dx].bytes());
        const size_t bytes = row_bytes(c[dx]);
        each_cut(c, type, x, offset, length, [&](int64_t from, int64_t rows, int64_t at) {
          std::memcpy(row(c[dx], from), row(c[dout], at), static_cast<size_t>(rows) * bytes);
        });
      };
    });

}  // namespace
}  // namespace anabranch::sequence
