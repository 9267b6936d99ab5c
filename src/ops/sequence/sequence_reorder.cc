// Ops that copy whole rows to other positions: reverse, concat, slice. A plan lists the source of each run of output
// rows; the gradient copies the same runs back.
#include <cstring>

#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::sequence_reorder_op {
namespace {

size_t row_bytes(const Tensor& t) { return static_cast<size_t>(t.row_elems()) * dtype_size(t.dtype()); }

const char* row(const Tensor& t, int64_t r) {
  return static_cast<const char*>(t.raw()) + static_cast<size_t>(r) * row_bytes(t);
}
char* row(Tensor& t, int64_t r) { return static_cast<char*>(t.mutable_raw()) + static_cast<size_t>(r) * row_bytes(t); }

// ---- sequence_reverse

AB_OP(sequence_reverse)
    .doc("Reverses the order of the rows of each sequence of the innermost level.")
    .in("X", "[rows, ...], with LoD")
    .out("Y", "like X")
    .infer([](InferContext& c) {
      if (c.runtime()) lod_of(c, "X");
      c.same_as("Y", "X");
    })
    .grad([](GradContext& g) { g.op("sequence_reverse").in("X", g.dout("Y")).out("Y", g.din("X")); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.out("Y")](KernelContext& c) {
        if (!c.needs(y)) return;
        const Offsets& o = offsets(c[x]);
        const size_t bytes = row_bytes(c[x]);
        for (int64_t s = 0; s < count(o); ++s) {
          const int64_t first = o[static_cast<size_t>(s)], last = o[static_cast<size_t>(s) + 1];
          for (int64_t r = first; r < last; ++r) std::memcpy(row(c[y], first + last - 1 - r), row(c[x], r), bytes);
        }
      };
    });

// ---- sequence_concat

// Calls fn(input, its first row, rows, first output row) for the sequences in output order.
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
  AB_CHECK(c.n_in("X") > 0, InvalidArgument, "X must list at least one variable");
  const Meta& first = c.in("X");
  AB_CHECK(first.shape.rank() > 0, InvalidArgument, "X must have at least one axis, got a scalar");
  for (int i = 0; i < c.n_in("X"); ++i) {
    const Meta& m = c.in("X", i);
    Shape same_rows = m.shape;
    if (same_rows.rank()) same_rows.set(0, first.shape[0]);
    AB_CHECK(m.dtype == first.dtype && compatible(same_rows, first.shape), ShapeMismatch,
             "X[{}] may differ from X[0] only in the number of rows, got {} of {} and {} of {}", i, m.shape.str(),
             dtype_name(m.dtype), first.shape.str(), dtype_name(first.dtype));
    if (!c.runtime()) continue;
    AB_CHECK(count(lod_of(c, "X", i).back()) == count(lod_of(c, "X").back()), ShapeMismatch,
             "X[{}] must have {} sequences, like X[0], got {}", i, count(lod_of(c, "X").back()),
             count(lod_of(c, "X", i).back()));
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
  c.runtime() ? set_sequences(c, joined_offsets(c)) : open_sequences(c);
}

AB_OP(sequence_concat)
    .doc(
        "Concatenates sequences: sequence i of Out holds the rows of sequence i of every input, in the order of the "
        "inputs.")
    .in_list("X", "[rows, ...] each, with the same number of sequences")
    .out("Out", "[sum of rows, ...], dtype of X")
    .infer(infer_concat)
    .grad_reads({"X"})
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

AB_GRAD(sequence_concat)
    .doc("X@GRAD = for each input, its rows of Out@GRAD.")
    .grad_lod("X@GRAD", "X")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const size_t bytes = row_bytes(c[dout]);
        each_joined(
            x.count, [&](int i) -> const Offsets& { return offsets(c.at(x, i)); },
            [&](int i, int64_t first, int64_t rows, int64_t at) {
              if (!c.needs(dx, i)) return;
              std::memcpy(row(c.at(dx, i), first), row(c[dout], at), static_cast<size_t>(rows) * bytes);
            });
      };
    });

// ---- sequence_slice

// Offset and Length of each sequence, which must be within it.
struct Cuts {
  Tensor scratch[2];
  const int64_t *offset, *length;
  Cuts(const Tensor& offsets_in, const Tensor& lengths, const Offsets& o)
      : offset(as_int64(offsets_in, &scratch[0])), length(as_int64(lengths, &scratch[1])) {
    AB_CHECK(is_number_per_row(offsets_in.shape(), count(o)) && is_number_per_row(lengths.shape(), count(o)),
             ShapeMismatch, "Offset and Length must have one number for each of the {} sequences of X, got {} and {}",
             count(o), offsets_in.shape().str(), lengths.shape().str());
    for (int64_t s = 0; s < count(o); ++s) {
      const int64_t rows = o[static_cast<size_t>(s) + 1] - o[static_cast<size_t>(s)];
      AB_CHECK(offset[s] >= 0 && length[s] >= 0 && offset[s] <= rows && length[s] <= rows - offset[s], InvalidArgument,
               "Offset and Length must lie in sequence {} of {} rows, got {} and {}", s, rows, offset[s], length[s]);
    }
  }
};

Offsets sliced_offsets(const InferContext& c) {
  const Offsets& o = lod_of(c, "X").back();
  const Cuts cuts(*c.in("Offset").value, *c.in("Length").value, o);
  Offsets made{0};
  for (int64_t s = 0; s < count(o); ++s) made.push_back(made.back() + cuts.length[s]);
  return made;
}

void infer_slice(InferContext& c) {
  for (const char* slot : {"Offset", "Length"}) check_ids_dtype(c, slot);
  if (c.runtime()) return set_sequences(c, sliced_offsets(c));
  out_rows(c, "Out", "X", kUnknown);
  c.out("Out").lod_level = 0;  // as Fluid 1.8.5 declares it
}

template <class Fn> void each_cut(KernelContext& c, In x, In offset, In length, Fn&& fn) {
  const Offsets& o = offsets(c[x]);
  const Cuts cuts(c[offset], c[length], o);
  int64_t at = 0;
  for (int64_t s = 0; s < count(o); ++s) {
    fn(o[static_cast<size_t>(s)] + cuts.offset[s], cuts.length[s], at);
    at += cuts.length[s];
  }
}

AB_OP(sequence_slice)
    .doc("Out = the Length rows from row Offset on of each sequence.")
    .in("X", "[rows, ...], with LoD")
    .in("Offset", "[sequences, 1] int32 or int64")
    .in("Length", "[sequences, 1] int32 or int64")
    .out("Out", "[sum of Length, ...]")
    .effects(kDynamic)
    .infer(infer_slice)
    .grad_reads({"X", "Offset", "Length"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), offset = op.in("Offset"), length = op.in("Length"), out = op.out("Out")](KernelContext& c) {
            const size_t bytes = row_bytes(c[x]);
            each_cut(c, x, offset, length, [&](int64_t from, int64_t rows, int64_t at) {
              std::memcpy(row(c[out], at), row(c[x], from), static_cast<size_t>(rows) * bytes);
            });
          };
    });

AB_GRAD(sequence_slice)
    .doc("X@GRAD = Out@GRAD at the selected rows, zero elsewhere.")
    .effects(kDynamic)
    .grad_lod("X@GRAD", "X")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), offset = op.in("Offset"), length = op.in("Length"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        std::memset(c[dx].mutable_raw(), 0, c[dx].bytes());
        const size_t bytes = row_bytes(c[dx]);
        each_cut(c, x, offset, length, [&](int64_t from, int64_t rows, int64_t at) {
          std::memcpy(row(c[dx], from), row(c[dout], at), static_cast<size_t>(rows) * bytes);
        });
      };
    });

}  // namespace
}  // namespace anabranch::sequence::sequence_reorder_op
