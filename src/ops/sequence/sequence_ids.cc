// Ops on sequences of ids: sliding windows, and erasing tokens.
#include <algorithm>

#include "ops/sequence/offsets.h"

namespace anabranch::sequence::sequence_ids_op {
namespace {

void check_ids_column(const InferContext& c) {
  check_ids_dtype(c, "X");
  check_rank(c, "X", 2, 2);
  check_shape(c, "X", Shape{kUnknown, 1});
}

AB_OP(sequence_enumerate)
    .doc(
        "Lists windows of ids: Out[t] holds the win_size ids of a sequence from position t on, and pad_value past its "
        "end.")
    .in("X", "[rows, 1] int32 or int64, with LoD")
    .out("Out", "[rows, win_size], dtype and LoD of X")
    .attr<int32_t>("win_size", 1, "number of ids in a window, at least 1",
                   [](int32_t v) { AB_CHECK(v >= 1, InvalidArgument, "win_size must be at least 1, got {}", v); })
    .attr<int32_t>("pad_value", 0, "value of the ids past the end")
    .infer([](InferContext& c) {
      check_ids_column(c);
      if (c.runtime()) lod_of(c, "X");
      c.set_out("Out", Shape{c.in("X").shape[0], c.attr<int32_t>("win_size")}, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .no_grad("ids have no gradient")
    .cpu<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const int64_t window = op.attr<int32_t>("win_size");
      const T pad = static_cast<T>(op.attr<int32_t>("pad_value"));
      return [=, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Offsets& o = offsets(c[x]);
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        for (size_t s = 1; s < o.size(); ++s) {
          for (int64_t t = o[s - 1]; t < o[s]; ++t) {
            for (int64_t k = 0; k < window; ++k) *to++ = t + k < o[s] ? from[t + k] : pad;
          }
        }
      };
    });

// The kept ids of X, and the sequence ends among them.
template <class T> Offsets kept_offsets(const T* ids, const Offsets& o, const std::vector<int32_t>& tokens) {
  Offsets made{0};
  int64_t kept = 0;
  for (size_t s = 1; s < o.size(); ++s) {
    for (int64_t t = o[s - 1]; t < o[s]; ++t) kept += std::find(tokens.begin(), tokens.end(), ids[t]) == tokens.end();
    made.push_back(kept);
  }
  return made;
}

Offsets kept_offsets(const InferContext& c) {
  const auto& tokens = c.attr<std::vector<int32_t>>("tokens");
  const Offsets& o = lod_of(c, "X").back();
  const Tensor& x = *c.in("X").value;
  return x.dtype() == DType::kInt64 ? kept_offsets(x.data<int64_t>(), o, tokens)
                                    : kept_offsets(x.data<int32_t>(), o, tokens);
}

AB_OP(sequence_erase)
    .doc("Out = X without the ids in tokens.")
    .in("X", "[rows, 1] int32 or int64, with LoD")
    .out("Out", "[kept rows, 1] with the same number of sequences")
    .attr<std::vector<int32_t>>("tokens", {}, "ids to erase")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      check_ids_column(c);
      if (!c.runtime()) return open_sequences(c);
      Offsets made = kept_offsets(c);
      out_rows(c, "Out", "X", made.back());
      set_lod(c, "Out", with_last(lod_of(c, "X"), std::move(made)));
    })
    .no_grad("ids have no gradient")
    .cpu<int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [tokens = op.attr<std::vector<int32_t>>("tokens"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        for (int64_t t = 0; t < c[x].numel(); ++t) {
          if (std::find(tokens.begin(), tokens.end(), from[t]) == tokens.end()) *to++ = from[t];
        }
      };
    });

}  // namespace
}  // namespace anabranch::sequence::sequence_ids_op
