// The labels that a path of connectionist temporal classification stands for.
#include <algorithm>

#include "ops/kernels/outputs.h"
#include "ops/sequence/spans.h"

namespace anabranch::sequence {
namespace {

struct Rule {
  int64_t blank;
  bool merge;
  explicit Rule(int32_t blank_class, bool merge_repeated) : blank(blank_class), merge(merge_repeated) {}

  // Does the label at place t > 0 of a path stay? Without branches, of which no processor could tell where they go.
  template <class T> bool keeps(const T* path, int64_t t) const {
    return (path[t] != blank) & !(merge & (path[t - 1] == path[t]));
  }
  template <class T> int64_t count(const T* path, int64_t n) const {
    if (n == 0) return 0;
    int64_t kept = path[0] != blank;
    for (int64_t t = 1; t < n; ++t) kept += keeps(path, t);
    return kept;
  }
  // Returns the end of the labels that stay; there is room for them up to `limit`, at least.
  template <class T> T* copy(const T* path, int64_t n, T* to, const T* limit) const {
    if (n == 0) return to;
    return limit - to >= n ? copy(path, n, to, [] { return true; }) : copy(path, n, to, [&] { return to < limit; });
  }
  // room(): is there room for another label?
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

template <class T> Offsets ends_of(const Rule& rule, const T* paths, const Offsets& o) {
  Offsets made;
  made.reserve(o.size());
  made.push_back(0);
  for (size_t s = 1; s < o.size(); ++s) made.push_back(made.back() + rule.count(paths + o[s - 1], o[s] - o[s - 1]));
  return made;
}

void infer(InferContext& c) {
  check_tensor(c, "Input");
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
    c.out("Output").lod_level = 1;
    c.set_out("OutputLength", Shape{kUnknown, 1}, in.dtype);
    return;
  }
  const Rule rule(c.attr<int32_t>("blank"), c.attr<bool>("merge_repeated"));
  const Offsets& o = single_level(c, "Input")[0];
  Offsets made = in.dtype == DType::kInt64 ? ends_of(rule, in.value->data<int64_t>(), o)
                                           : ends_of(rule, in.value->data<int32_t>(), o);
  c.set_out("OutputLength", Shape{sequence::count(made), 1}, in.dtype);
  c.set_out("Output", Shape{made.back(), 1}, in.dtype);
  set_lod(c, "Output", one_level(std::move(made)));
}

AB_OP(ctc_align)
    .doc("Input without labels that repeat the one before them, and then without blanks.")
    .source("Graves et al., Connectionist temporal classification, ICML 2006")
    .in("Input", "[rows, 1] int32 or int64 with sequences, or [batch, rows] with InputLength")
    .in_optional("InputLength", "[batch] or [batch, 1] int32 or int64, rows of each sequence")
    .out("Output", "[labels that stay, 1] with sequences, or [batch, rows] with padding_value behind the labels")
    .out_optional("OutputLength", "[batch, 1], labels of each sequence")
    .attr<int32_t>("blank", 0, "the class of no label")
    .attr<bool>("merge_repeated", true, "drop labels that repeat the one before them")
    .attr<int32_t>("padding_value", 0, "stands behind the labels")
    .dtype_of_input("Input")
    .effects(kDynamic)
    .infer(infer)
    .no_grad("labels have no gradient")
    .cpu<int32_t, int64_t>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const Rule rule(op.attr<int32_t>("blank"), op.attr<bool>("merge_repeated"));
      const T padding = static_cast<T>(op.attr<int32_t>("padding_value"));
      return [=, in = op.in("Input"), length = op.in("InputLength"), out = op.out("Output"),
              kept = op.out("OutputLength"), scratch = std::make_shared<Tensor>()](KernelContext& c) {
        const Shape& x = c[in].shape();
        const Spans spans =
            length ? Spans("InputLength", as_int64(c[length], scratch.get()), x[0], x[1]) : Spans(offsets(c[in]));
        const T* from = c[in].template data<T>();
        T* to = c[out].template mutable_data<T>();
        const T* limit = to + c[out].numel();
        T* counts = wanted<T>(c, kept);
        for (int64_t s = 0; s < spans.count(); ++s) {
          T* end = rule.copy(from + spans.begin(s), spans.rows(s), to, limit);
          if (counts) counts[s] = static_cast<T>(end - to);
          if (length) std::fill(end, to + x[1], padding);
          to = length ? to + x[1] : end;
        }
      };
    });

}  // namespace
}  // namespace anabranch::sequence
