// Splits rows or sequences over two tensors by a mask, and merges them again: a branch per row.
#include <algorithm>

#include "opdef/op_def.h"
#include "ops/control/slices.h"
#include "ops/declare/declare.h"

namespace anabranch::control::split_lod_tensor_op {
namespace {

const bool* mask_of(const KernelContext& c, In mask, int64_t slices) {
  const Tensor& t = c[mask];
  AB_CHECK(t.dtype() == DType::kBool && is_number_per_row(t.shape(), slices), ShapeMismatch,
           "Mask must hold one bool for each of {} sequences or rows, got {} {}", slices, dtype_name(t.dtype()),
           t.shape().str());
  return t.data<bool>();
}

// fn(side, items [begin, end)) for each run of consecutive items of one side: 1 where the mask is true.
template <class Fn> void each_run(const bool* mask, int64_t n, Fn&& fn) {
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    while (end < n && mask[end] == mask[i]) ++end;
    fn(mask[i] ? 1 : 0, i, end);
    i = end;
  }
}

void split(const Tensor& x, const bool* mask, const Slices& slices, Tensor* const (&outs)[2]) {
  int64_t rows[2] = {0, 0}, at[2] = {0, 0};
  LoD lods[2];  // an empty side has (empty) LoD, too
  for (LoD& lod : lods) lod.assign(slices.levels(), {0});
  each_run(mask, slices.count(), [&](int side, int64_t begin, int64_t end) {
    rows[side] += slices.rows(begin, end).count;
    if (slices.have_lod()) append_lod(&lods[side], slices.lod(begin, end));
  });
  for (int side : {0, 1}) {
    if (!outs[side]) continue;
    resize_rows(*outs[side], x, rows[side]);
    give_lod(*outs[side], std::move(lods[side]));
  }
  each_run(mask, slices.count(), [&](int side, int64_t begin, int64_t end) {
    const Rows run = slices.rows(begin, end);
    if (outs[side]) copy_rows(x, run.first, *outs[side], at[side], run.count);
    at[side] += run.count;
  });
}

// The gradient of the split: rows return to their positions; those of a side without a gradient are zero.
void unsplit(const bool* mask, const Slices& slices, const Tensor* const (&sides)[2], Tensor& out) {
  int64_t at[2] = {0, 0};
  std::memset(out.mutable_raw(), 0, out.bytes());
  each_run(mask, slices.count(), [&](int side, int64_t begin, int64_t end) {
    const Rows run = slices.rows(begin, end);
    const Tensor* from = sides[side];
    if (from) {
      AB_CHECK(
          at[side] + run.count <= from->rows() && from->row_elems() == out.row_elems() && from->dtype() == out.dtype(),
          ShapeMismatch, "the branch for {} must have at least {} rows like {}, got {}", side ? "true" : "false",
          at[side] + run.count, out.shape().str(), from->shape().str());
      copy_rows(*from, at[side], out, run.first, run.count);
    }
    at[side] += run.count;
  });
}

const Tensor* tensor_or_null(const KernelContext& c, In in) {
  if (!in) return nullptr;
  const auto* t = c.value(in).get<Tensor>();
  return t && t->initialized() ? t : nullptr;
}

// Items of the two sides of a merge, and the destinations of their rows.
struct Parts {
  Parts(const KernelContext& c, In x, In in_true, In in_false, int level)
      : parts{tensor_or_null(c, in_false), tensor_or_null(c, in_true)} {
    const bool by_sequences = !c[x].lod().empty();
    for (int side : {0, 1}) {
      if (!parts[side]) continue;
      const LoD& lod = parts[side]->lod();
      AB_CHECK(!by_sequences || !lod.empty(), InvalidArgument, "the branch for {} must have LoD because X has it",
               side ? "true" : "false");
      slices[side] = Slices(by_sequences ? lod : LoD{}, 0, parts[side]->rows());
    }
    if (!by_sequences) return;
    const LoD& lod = c[x].lod();
    AB_CHECK(level >= 0 && static_cast<size_t>(level) < lod.size(), InvalidArgument,
             "level must be one of the {} levels of sequences of X, got {}", lod.size(), level);
    above.assign(lod.begin(), lod.begin() + level);
  }
  // fn(side, its item) in the order of the result.
  template <class Fn> void each(const bool* mask, int64_t n, Fn&& fn) const {
    int64_t next[2] = {0, 0};
    each_run(mask, n, [&](int side, int64_t begin, int64_t end) {
      const int64_t count = end - begin, last = next[side] + count;
      AB_CHECK(last <= slices[side].count(), ShapeMismatch,
               "the branch for {} must have at least {} sequences or rows, got {}", side ? "true" : "false", last,
               slices[side].count());
      fn(side, slices[side].rows(next[side], last), slices[side].lod(next[side], last));
      next[side] = last;
    });
  }
  const Tensor* parts[2];
  Slices slices[2];
  LoD above;
};

void merge(const Parts& parts, const bool* mask, int64_t n, Tensor& out) {
  const Tensor* like = parts.parts[1] ? parts.parts[1] : parts.parts[0];
  AB_CHECK(like, InvalidArgument, "InTrue or InFalse must hold a tensor");
  for (int side : {0, 1}) {
    const Tensor* part = parts.parts[side];
    AB_CHECK(!part || (part->dtype() == like->dtype() && part->row_elems() == like->row_elems()), ShapeMismatch,
             "the rows of InTrue and InFalse must have the same dtype and shape, got {} {} and {} {}",
             dtype_name(like->dtype()), like->shape().str(), dtype_name(part->dtype()), part->shape().str());
  }
  int64_t rows = 0;
  LoD lod;
  parts.each(mask, n, [&](int, const Rows& run, const LoD& run_lod) {
    rows += run.count;
    if (lod.empty()) lod.assign(run_lod.size(), {0});
    if (!run_lod.empty()) append_lod(&lod, run_lod);
  });
  Tensor made;  // Out may alias an input
  resize_rows(made, *like, rows);
  int64_t at = 0;
  parts.each(mask, n, [&](int side, const Rows& run, const LoD&) {
    copy_rows(*parts.parts[side], run.first, made, at, run.count);
    at += run.count;
  });
  lod.insert(lod.begin(), parts.above.begin(), parts.above.end());
  give_lod(made, std::move(lod));
  out = std::move(made);
}

void infer_split(InferContext& c) {
  if (c.runtime()) return;
  for (const char* out : {"OutTrue", "OutFalse"}) {
    c.same_as(out, "X");
    if (c.out(out).shape.rank() > 0) c.out(out).shape.set(0, kUnknown);
  }
}

OpDef& declare_merge(const char* type, const char* doc) {
  return declare_op(type, __FILE__)
      .doc(doc)
      .in("X", "Out takes its LoD; without LoD, Mask selects rows")
      .in("Mask", "[N, 1] bool, one for each sequence or row")
      .in("InTrue", "sequences or rows where Mask is true, in order")
      .in("InFalse", "the others, in order")
      .out("Out", "all of them, in the order of Mask")
      .attr<int32_t>("level", 0, "LoD level of X that Mask selects from")
      .effects(kDynamic | kMaybeUnset)
      .traits(kOnlyComputes)
      .infer([](InferContext& c) {
        if (c.runtime()) return;
        c.same_as("Out", "InTrue");
        if (c.out("Out").shape.rank() > 0) c.out("Out").shape.set(0, kUnknown);
      })
      .cpu_any([](const KernelArgs& op) -> Kernel {
        return [x = op.in("X"), mask = op.in("Mask"), yes = op.in("InTrue"), no = op.in("InFalse"), out = op.out("Out"),
                level = op.attr<int32_t>("level")](KernelContext& c) {
          const int64_t n = c[mask].numel();
          merge(Parts(c, x, yes, no, level), mask_of(c, mask, n), n, c.value(out).as<Tensor>());
        };
      });
}

void declare_merges() {
  declare_merge("merge_lod_tensor", "Out = the sequences or rows of InTrue and InFalse, merged in the order of Mask.")
      .grad_reads({"X", "Mask", "InTrue", "InFalse"})
      .grad_to({"InTrue", "InFalse"});
  declare_merge("merge_lod_tensor_infer", "Like merge_lod_tensor, for inference.").no_grad("it is for inference");
}
AB_OPS(declare_merges);

AB_GRAD(merge_lod_tensor)
    .doc("InTrue@GRAD and InFalse@GRAD: the rows of Out@GRAD that came from each.")
    .takes("InTrue", Holds::kAnything)
    .takes("InFalse", Holds::kAnything)
    .effects(kDynamic | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      if (c.runtime()) return;
      c.same_as("InTrue@GRAD", "InTrue");
      c.same_as("InFalse@GRAD", "InFalse");
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), mask = op.in("Mask"), yes = op.in("InTrue"), no = op.in("InFalse"),
              dout = op.in("Out@GRAD"), dyes = op.out("InTrue@GRAD"), dno = op.out("InFalse@GRAD"),
              level = op.attr<int32_t>("level")](KernelContext& c) {
        const int64_t n = c[mask].numel();
        const Parts parts(c, x, yes, no, level);
        Tensor* made[2] = {nullptr, nullptr};
        for (int side : {0, 1}) {
          const Out out = side ? dyes : dno;
          if (!parts.parts[side] || !c.needs(out)) continue;
          made[side] = &c.value(out).as<Tensor>();
          resize_rows(*made[side], *parts.parts[side], parts.parts[side]->rows());
          std::memset(made[side]->mutable_raw(), 0, made[side]->bytes());
        }
        int64_t at = 0;
        parts.each(mask_of(c, mask, n), n, [&](int side, const Rows& run, const LoD&) {
          AB_CHECK(at + run.count <= c[dout].rows(), ShapeMismatch, "Out@GRAD must have more than {} rows", at);
          if (made[side]) copy_rows(c[dout], at, *made[side], run.first, run.count);
          at += run.count;
        });
      };
    });

AB_OP(split_lod_tensor)
    .doc("OutTrue = the sequences of a level, or rows, of X where Mask is true; OutFalse = the others.")
    .in("X", "[rows, ...]")
    .in("Mask", "[N, 1] bool, one for each sequence or row")
    .out("OutTrue", "like X")
    .out("OutFalse", "like X")
    .attr<int32_t>("level", 0, "LoD level that Mask selects from")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer(infer_split)
    .grad_reads({"X", "Mask"})
    .grad_to({"X"})
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), mask = op.in("Mask"), yes = op.out("OutTrue"), no = op.out("OutFalse"),
              level = op.attr<int32_t>("level")](KernelContext& c) {
        const Slices slices(c[x].lod(), level, c[x].rows());
        Tensor* const outs[2] = {c.needs(no) ? &c.value(no).as<Tensor>() : nullptr,
                                 c.needs(yes) ? &c.value(yes).as<Tensor>() : nullptr};
        split(c[x], mask_of(c, mask, slices.count()), slices, outs);
      };
    });

AB_GRAD(split_lod_tensor)
    .doc("X@GRAD: the rows of OutTrue@GRAD and OutFalse@GRAD at their original positions.")
    .effects(kDynamic)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.same_as("X@GRAD", "X"); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), mask = op.in("Mask"), yes = op.in("OutTrue@GRAD"), no = op.in("OutFalse@GRAD"),
              out = op.out("X@GRAD"), level = op.attr<int32_t>("level")](KernelContext& c) {
        if (!c.needs(out)) return;
        const Slices slices(c[x].lod(), level, c[x].rows());
        const Tensor* const sides[2] = {tensor_or_null(c, no), tensor_or_null(c, yes)};
        unsplit(mask_of(c, mask, slices.count()), slices, sides, c[out]);
      };
    });

}  // namespace
}  // namespace anabranch::control::split_lod_tensor_op
