// The labels of a path of connectionist temporal classification.
#include <algorithm>

#include "ops/kernels/outputs.h"
#include "ops/kernels/wide.h"
#include "ops/sequence/spans.h"

namespace anabranch::sequence::ctc_align_op {
namespace {

struct Rule {
  int64_t blank;
  bool merge;
  explicit Rule(int32_t blank_class, bool merge_repeated) : blank(blank_class), merge(merge_repeated) {}

  // Whether the label at position t > 0 of a path is kept. Branch-free, because the branches would be unpredictable.
  template <class T> bool keeps(const T* path, int64_t t) const {
    return (path[t] != blank) & !(merge & (path[t - 1] == path[t]));
  }
  // Returns the end of the kept labels; there must be room for them up to `limit`.
  template <class T> T* copy(const T* path, int64_t n, T* to, const T* limit) const {
    if (n == 0) return to;
    return limit - to >= n ? copy(path, n, to, [] { return true; }) : copy(path, n, to, [&] { return to < limit; });
  }
  // room(): whether there is room for another label.
  template <class T, class Room> T* copy(const T* path, int64_t n, T*& to, Room room) const {
    if (!room()) return to;
    *to = path[0];
    to += path[0] != blank;
    for (int64_t t = 1; t < n && room(); ++t) {
      *to = path[t];
      to += keeps(path, t);
    }
    return to;
  }
};

// block(first row, rows, whether each is kept: 0 or 1) for all rows of all paths. Sequences are short: a loop per
// sequence would cost more than the work.
template <class T, class Block> void each_block(const Rule& rule, const T* paths, const Offsets& o, Block&& block) {
  constexpr int64_t kBlock = 2048;
  bool keeps[kBlock];
  const T blank = static_cast<T>(rule.blank);
  size_t sequence = 0;
  for (int64_t from = 0; from < o.back(); from += kBlock) {
    const int64_t rows = std::min(kBlock, o.back() - from);
    const T* path = paths + from;
    in_wide_vectors([=, to = keeps, merge = rule.merge] {
      bool* made = to;  // local copies, which the writes of flags cannot alias
      const T *at = path, none = blank, always = merge ? T{0} : T{1};
      const int64_t n = rows;
      for (int64_t t = from == 0; t < n; ++t) made[t] = (at[t] != none) & (static_cast<T>(at[t - 1] != at[t]) | always);
    });
    for (; o[sequence] < from + rows; ++sequence) {  // no label precedes the first one
      const int64_t t = o[sequence] - from;
      keeps[t] = path[t] != blank;
    }
    block(from, rows, static_cast<const bool*>(keeps));
  }
}

template <class T> Offsets ends_of(const Rule& rule, const T* paths, const Offsets& o) {
  Offsets made(o.size());
  size_t sequence = 0;
  int64_t kept = 0;
  each_block(rule, paths, o, [&](int64_t from, int64_t rows, const bool* keeps) {
    size_t at = sequence;  // copies in registers
    int64_t sum = kept, next = o[at] - from;
    for (int64_t t = 0; t < rows; ++t) {
      for (; t == next; next = o[++at] - from) made[at] = sum;
      sum += keeps[t];
    }
    sequence = at;
    kept = sum;
  });
  std::fill(made.begin() + static_cast<int64_t>(sequence), made.end(), kept);
  return made;
}

// The kept labels, as far as there is room.
template <class T> void copy_kept(const Rule& rule, const T* paths, const Offsets& o, T* to, const T* limit) {
  each_block(rule, paths, o, [&](int64_t from, int64_t rows, const bool* keeps) {
    const T* path = paths + from;
    T* at = to;
    if (limit - at >= rows) {
      for (int64_t t = 0; t < rows; ++t) {
        *at = path[t];
        at += keeps[t];
      }
    } else {
      for (int64_t t = 0; t < rows && at < limit; ++t) {
        *at = path[t];
        at += keeps[t];
      }
    }
    to = at;
  });
}

void infer(InferContext& c) {
  check_ids_dtype(c, "Input");
  check_rank(c, "Input", 2, 2);
  const Meta& in = c.in("Input");
  if (c.has_in("InputLength")) {
    check_lengths(c, "InputLength", in.shape[0]);
    c.set_out("Output", in.shape, in.dtype);
    share_fitting_lod(c, "Output", "Input");
    c.set_out("OutputLength", Shape{in.shape[0], 1}, in.dtype);
    return;
  }
  check_shape(c, "Input", Shape{kUnknown, 1});
  if (!c.runtime()) {
    c.set_out("Output", Shape{kUnknown, 1}, in.dtype);
    c.out("Output").lod_level = 0;  // as Fluid 1.8.5 declares it
    c.set_out("OutputLength", Shape{kUnknown, 1}, in.dtype);
    return;
  }
  const Rule rule(c.attr<int32_t>("blank"), c.attr<bool>("merge_repeated"));
  Offsets rows;
  const Offsets& o = outer_rows(lod_of(c, "Input"), &rows);
  Offsets made = in.dtype == DType::kInt64 ? ends_of(rule, in.value->data<int64_t>(), o)
                                           : ends_of(rule, in.value->data<int32_t>(), o);
  c.set_out("OutputLength", Shape{sequence::count(made), 1}, in.dtype);
  c.set_out("Output", Shape{made.back(), 1}, in.dtype);
  LoD lod;
  lod.push_back(std::move(made));  // a list of one would be copied
  set_lod(c, "Output", std::make_shared<const LoD>(std::move(lod)));
}

AB_OP(ctc_align)
    .doc("Output = Input without repeated labels, and then without blanks.")
    .source("Graves et al., Connectionist temporal classification, ICML 2006")
    .in("Input", "[rows, 1] int32 or int64 with LoD, or [batch, rows] with InputLength")
    .in_optional("InputLength", "[batch] or [batch, 1] int32 or int64, rows of each sequence")
    .out("Output", "[kept labels, 1] with LoD, or [batch, rows] with padding_value after the labels")
    .out_optional("OutputLength", "[batch, 1], number of labels of each sequence")
    .attr<int32_t>("blank", 0, "class of the blank")
    .attr<bool>("merge_repeated", true, "drops labels equal to the previous one")
    .attr<int32_t>("padding_value", 0, "value after the labels")
    .dtype_of_input("Input")
    .effects(kDynamic)
    .infer(infer)
    .no_grad("labels have no gradient")
    .cpu<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const Rule rule(op.attr<int32_t>("blank"), op.attr<bool>("merge_repeated"));
      const T padding = static_cast<T>(op.attr<int32_t>("padding_value"));
      return [=, in = op.in("Input"), length = op.in("InputLength"), out = op.out("Output"),
              kept = op.out("OutputLength"), scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const Shape& x = c[in].shape();
        const T* from = c[in].data<T>();
        T *to = c[out].mutable_data<T>(), *counts = needed<T>(c, kept);
        const T* limit = to + c[out].numel();
        if (!length) {
          Offsets outer;
          copy_kept(rule, from, outer_rows(c[in].lod(), &outer), to, limit);
          const Offsets& made = offsets(c[out]);
          for (int64_t s = 0; counts && s < sequence::count(made); ++s) {
            counts[s] = static_cast<T>(made[static_cast<size_t>(s) + 1] - made[static_cast<size_t>(s)]);
          }
          return;
        }
        const Spans spans("InputLength", as_int64(c[length], scratch.get()), x[0], x[1]);
        for (int64_t s = 0; s < spans.count(); ++s, to += x[1]) {
          T* end = rule.copy(from + spans.begin(s), spans.rows(s), to, limit);
          if (counts) counts[s] = static_cast<T>(end - to);
          std::fill(end, to + x[1], padding);
        }
      };
    });

}  // namespace
}  // namespace anabranch::sequence::ctc_align_op
