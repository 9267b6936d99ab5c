// Selects samples that have one of the requested tags.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sparse::filter_by_instag_op {
namespace {

// Rows [first, end) of Ins belong to sample i.
struct Samples {
  const std::vector<int64_t>* offsets;  // null: one row per sample
  int64_t rows;
  int64_t count() const { return offsets ? static_cast<int64_t>(offsets->size()) - 1 : rows; }
  int64_t first(int64_t i) const { return offsets ? (*offsets)[static_cast<size_t>(i)] : i; }
};

Samples samples_of(bool grouped, int64_t rows, const LoD& lod) {
  if (!grouped) return {nullptr, rows};
  AB_CHECK(!lod.empty() && lod.back().back() == rows, InvalidArgument,
           "Ins must have LoD that ends at its {} rows if is_lod is set", rows);
  return {&lod.back(), rows};
}

// The selected samples and their total number of rows.
struct Kept {
  std::vector<int64_t> samples;
  int64_t rows = 0;
  Kept(const Samples& s, const Tensor& tags, const LoD& lod, const Tensor& filter) {
    AB_CHECK(
        !lod.empty() && static_cast<int64_t>(lod.back().size()) == s.count() + 1 && lod.back().back() == tags.numel(),
        ShapeMismatch, "Ins_tag must have a sequence of tags for each of the {} samples of Ins, got {}", s.count(),
        tags.shape().str());
    const auto& o = lod.back();
    const int64_t *tag = tags.data<int64_t>(), *chosen = filter.data<int64_t>(), *end = chosen + filter.numel();
    for (int64_t i = 0; i < s.count(); ++i) {
      const int64_t *first = tag + o[static_cast<size_t>(i)], *last = tag + o[static_cast<size_t>(i) + 1];
      if (!std::any_of(first, last, [=](int64_t k) { return std::find(chosen, end, k) != end; })) continue;
      samples.push_back(i);
      rows += s.first(i + 1) - s.first(i);
    }
  }
};

void check_tags(const InferContext& c) {
  check_rank(c, "Ins", 1, kMaxRank);
  for (const char* slot : {"Ins_tag", "Filter_tag"}) {
    check_dtype(c, slot, DType::kInt64);
  }
}

void infer_filter(InferContext& c) {
  check_tags(c);
  const Meta& x = c.in("Ins");
  Shape out = x.shape;
  int64_t rows = kUnknown, samples = kUnknown;
  std::vector<int64_t> made{0}, ones{0};
  if (c.runtime()) {
    static const LoD none;
    const Samples all = samples_of(c.attr<bool>("is_lod"), x.shape[0], x.lod ? *x.lod : none);
    const Kept kept(all, *c.in("Ins_tag").value, c.in("Ins_tag").lod ? *c.in("Ins_tag").lod : none,
                    *c.in("Filter_tag").value);
    for (int64_t i : kept.samples) made.push_back(made.back() + all.first(i + 1) - all.first(i));
    if (kept.samples.empty()) made.push_back(1);  // a placeholder row if no sample is selected
    rows = made.back();
    samples = static_cast<int64_t>(made.size()) - 1;
    for (int64_t i = 1; i <= samples; ++i) ones.push_back(i);
  }
  out.set(0, rows);
  c.set_out("Out", out, x.dtype);
  c.set_out("LossWeight", Shape{samples, 1}, DType::kFloat32);
  c.set_out("IndexMap", Shape{samples, 3}, DType::kInt64);
  if (!c.runtime()) return;
  sequence::set_lod(c, "Out", sequence::one_level(made));
  sequence::set_lod(c, "LossWeight", sequence::one_level(ones));
  sequence::set_lod(c, "IndexMap", sequence::one_level(std::move(ones)));
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [grouped = op.attr<bool>("is_lod"), filler = static_cast<T>(op.attr<int64_t>("out_val_if_empty")),
          x = op.in("Ins"), tags = op.in("Ins_tag"), filter = op.in("Filter_tag"), out = op.out("Out"),
          weight = op.out("LossWeight"), map = op.out("IndexMap")](KernelContext& c) {
    const Samples all = samples_of(grouped, c[x].rows(), c[x].lod());
    const Kept kept(all, c[tags], c[tags].lod(), c[filter]);
    const int64_t width = c[x].row_elems();
    T* to = c[out].mutable_data<T>();
    float* w = c[weight].mutable_data<float>();
    int64_t *m = c[map].mutable_data<int64_t>(), at = 0;
    for (int64_t i : kept.samples) {
      const int64_t first = all.first(i), rows = all.first(i + 1) - first;
      std::copy_n(c[x].data<T>() + first * width, rows * width, to + at * width);
      *w++ = 1.0f;
      for (int64_t number : {at, first, rows}) *m++ = number;
      at += rows;
    }
    if (!kept.samples.empty()) return;
    std::fill(to, to + c[out].numel(), filler);
    *w = 0.0f;
    m[0] = 0;
    m[1] = m[2] = 1;
  };
};

AB_OP(filter_by_instag)
    .doc("Out = the samples of Ins with a tag in Filter_tag, one sequence each.")
    .in("Ins", "[rows, ...] numbers")
    .in("Ins_tag", "[tags, 1] int64 with a sequence for each sample")
    .in("Filter_tag", "[tags] int64: the requested tags")
    .out("Out", "[rows of the selected samples, ...], or one row if there are none")
    .out("LossWeight", "[selected samples, 1] float32: 1; a single 0 if there are none")
    .out("IndexMap", "[selected samples, 3] int64: first row in Out, first row in Ins, rows; 0, 1, 1 if there are none")
    .attr<bool>("is_lod", true, "a sample is a sequence of Ins; false: a row")
    .attr<int64_t>("out_val_if_empty", 0, "value of the single row of Out if no sample is selected")
    .effects(kDynamic)
    .infer(infer_filter)
    .grad_reads({"Ins"}, {"LossWeight", "IndexMap"})
    .grad_from({"Out"})
    .grad_to({"Ins"})
    .cpu<float, double, int64_t, int32_t>(forward);

AB_GRAD(filter_by_instag)
    .doc("Ins@GRAD = Out@GRAD at the selected rows, zeros elsewhere.")
    .dtype_of_input("Ins")
    .infer([](InferContext& c) {
      check_rank(c, "Ins", 1, kMaxRank);
      check_same_dtype(c, "Out@GRAD", "Ins");
      const Shape &map = c.in("IndexMap").shape, &ins = c.in("Ins").shape, &dout = c.in("Out@GRAD").shape;
      AB_CHECK(map.rank() == 2 && (map[1] == 3 || map[1] == kUnknown) && c.in("IndexMap").dtype == DType::kInt64,
               ShapeMismatch, "IndexMap must be [samples, 3] of int64, got {}", map.str());
      check_dtype(c, "LossWeight", DType::kFloat32);
      AB_CHECK(dout.rank() == ins.rank() && compatible(dout.slice(1, dout.rank()), ins.slice(1, ins.rank())),
               ShapeMismatch, "Out@GRAD must have the rows of Ins {}, got {}", ins.str(), dout.str());
      grad_as(c, "Ins@GRAD", "Ins", "Ins");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [map = op.in("IndexMap"), weight = op.in("LossWeight"), dout = op.in("Out@GRAD"),
              dx = op.out("Ins@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        const int64_t width = c[dx].row_elems();
        T* to = c[dx].mutable_data<T>();
        std::fill(to, to + c[dx].numel(), T{0});
        const int64_t* m = c[map].data<int64_t>();
        if (c[weight].numel() == 1 && *c[weight].data<float>() == 0) return;  // no sample was selected
        for (int64_t i = 0; i < c[map].rows(); ++i, m += 3) {
          AB_CHECK(m[2] >= 0 && m[0] >= 0 && m[1] >= 0 && m[2] <= c[dout].rows() && m[0] <= c[dout].rows() - m[2] &&
                       m[2] <= c[dx].rows() && m[1] <= c[dx].rows() - m[2],
                   InvalidArgument, "IndexMap must name rows of Out and of Ins, got {} rows at {} and at {}", m[2],
                   m[0], m[1]);
          std::copy_n(c[dout].data<T>() + m[0] * width, m[2] * width, to + m[1] * width);
        }
      };
    });

}  // namespace
}  // namespace anabranch::sparse::filter_by_instag_op
