// Samples that carry one of the wanted tags.
#include <algorithm>
#include <cstring>
#include <memory>

#include "ops/declare/declare.h"
#include "ops/kernels/ids.h"

namespace anabranch {
namespace {

// Rows [first, end) of Ins belong to sample i.
struct Samples {
  const std::vector<int64_t>* offsets;  // null: one row each
  int64_t rows;
  int64_t count() const { return offsets ? static_cast<int64_t>(offsets->size()) - 1 : rows; }
  int64_t first(int64_t i) const { return offsets ? (*offsets)[static_cast<size_t>(i)] : i; }
};

Samples samples_of(const ir::Op& op, int64_t rows, const LoD& lod) {
  if (!op.attr<bool>("is_lod")) return {nullptr, rows};
  AB_CHECK(!lod.empty() && lod.back().back() == rows, InvalidArgument,
           "{}: Ins has no sequences that end at its {} rows; is_lod wants some", op.type, rows);
  return {&lod.back(), rows};
}

// The samples that stay, and the rows that they have together.
struct Kept {
  std::vector<int64_t> samples;
  int64_t rows = 0;
  Kept(const Samples& s, const Tensor& tags, const LoD& lod, const Tensor& wanted) {
    AB_CHECK(
        !lod.empty() && static_cast<int64_t>(lod.back().size()) == s.count() + 1 && lod.back().back() == tags.numel(),
        ShapeMismatch, "filter_by_instag: Ins_tag {} has no sequence of tags for each of the {} samples of Ins",
        tags.shape().str(), s.count());
    const auto& o = lod.back();
    const int64_t *tag = tags.data<int64_t>(), *want = wanted.data<int64_t>(), *end = want + wanted.numel();
    for (int64_t i = 0; i < s.count(); ++i) {
      const int64_t *first = tag + o[static_cast<size_t>(i)], *last = tag + o[static_cast<size_t>(i) + 1];
      if (!std::any_of(first, last, [=](int64_t k) { return std::find(want, end, k) != end; })) continue;
      samples.push_back(i);
      rows += s.first(i + 1) - s.first(i);
    }
  }
};

void check_tags(const InferContext& c) {
  check_tensor(c, "Ins");
  check_rank(c, "Ins", 1, kMaxRank);
  for (const char* slot : {"Ins_tag", "Filter_tag"}) {
    check_tensor(c, slot);
    AB_CHECK(c.in(slot).dtype == DType::kInt64, InvalidArgument, "{}: {} holds {}, expected int64", op_name(c), slot,
             dtype_name(c.in(slot).dtype));
  }
}

LoDRef one_level(std::vector<int64_t> o) { return std::make_shared<const LoD>(LoD{std::move(o)}); }

void set_row_lod(InferContext& c, const char* slot, std::vector<int64_t> o) {
  c.out(slot).lod = one_level(std::move(o));
  c.out(slot).lod_level = 1;
}

void infer_filter(InferContext& c) {
  check_tags(c);
  const Meta& x = c.in("Ins");
  Shape out = x.shape;
  int64_t rows = kUnknown, samples = kUnknown;
  std::vector<int64_t> made{0}, ones{0};
  if (c.runtime()) {
    static const LoD none;
    const Samples all = samples_of(c.op(), x.shape[0], x.lod ? *x.lod : none);
    const Kept kept(all, *c.in("Ins_tag").value, c.in("Ins_tag").lod ? *c.in("Ins_tag").lod : none,
                    *c.in("Filter_tag").value);
    for (int64_t i : kept.samples) made.push_back(made.back() + all.first(i + 1) - all.first(i));
    if (kept.samples.empty()) made.push_back(1);  // a row that stands for the lack of one
    rows = made.back();
    samples = static_cast<int64_t>(made.size()) - 1;
    for (int64_t i = 1; i <= samples; ++i) ones.push_back(i);
  }
  out.set(0, rows);
  c.set_out("Out", out, x.dtype);
  c.set_out("LossWeight", Shape{samples, 1}, DType::kFloat32);
  c.set_out("IndexMap", Shape{samples, 3}, DType::kInt64);
  if (!c.runtime()) return;
  set_row_lod(c, "Out", made);
  set_row_lod(c, "LossWeight", ones);
  set_row_lod(c, "IndexMap", std::move(ones));
}

template <class T> Kernel forward(const KernelArgs& op) {
  return [op_ = op.op(), filler = static_cast<T>(op.attr<int64_t>("out_val_if_empty")), x = op.in("Ins"),
          tags = op.in("Ins_tag"), wanted = op.in("Filter_tag"), out = op.out("Out"), weight = op.out("LossWeight"),
          map = op.out("IndexMap")](KernelContext& c) {
    const Samples all = samples_of(op_, c[x].rows(), c[x].lod());
    const Kept kept(all, c[tags], c[tags].lod(), c[wanted]);
    const int64_t width = c[x].row_elems();
    T* to = c[out].template mutable_data<T>();
    float* w = c[weight].template mutable_data<float>();
    int64_t *m = c[map].template mutable_data<int64_t>(), at = 0;
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
    std::fill(m, m + 3, int64_t{0});
  };
}

OpDef& filter_attrs(OpDef& def) {
  return def.attr<bool>("is_lod", true, "a sample is a sequence of Ins; else it is a row")
      .attr<int64_t>("out_val_if_empty", 0, "fills the only row of Out when no sample stays");
}

[[maybe_unused]] OpDef& filter =
    filter_attrs(declare_op("filter_by_instag", __FILE__))
        .doc("The samples of Ins of which a tag is among Filter_tag, each a sequence of Out.")
        .in("Ins", "[rows, ...] numbers")
        .in("Ins_tag", "[tags, 1] int64 with a sequence for each sample")
        .in("Filter_tag", "[wanted tags] int64")
        .out("Out", "[rows of the samples that stay, ...], or one row when none does")
        .out("LossWeight", "[samples that stay, 1] float32: 1; one 0 when none does")
        .out("IndexMap", "[samples that stay, 3] int64: first row in Out, first row in Ins, rows")
        .effects(kDynamic)
        .dtype_of_input("Ins")
        .infer(infer_filter)
        .grad([](GradContext& g) {
          g.op("filter_by_instag_grad")
              .in("Ins", g.in("Ins"))
              .in("LossWeight", g.out("LossWeight"))
              .in("IndexMap", g.out("IndexMap"))
              .in("Out@GRAD", g.dout("Out"))
              .out("Ins@GRAD", g.din("Ins"));
        })
        .cpu<float, double, int64_t, int32_t>(
            [](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

[[maybe_unused]] OpDef& filter_grad =
    filter_attrs(declare_op("filter_by_instag_grad", __FILE__))
        .doc("Out@GRAD at the rows that stayed, zeros elsewhere.")
        .in("Ins", "for its shape")
        .in("LossWeight", "from filter_by_instag")
        .in("IndexMap", "from filter_by_instag")
        .in("Out@GRAD", "as Out")
        .out("Ins@GRAD", "as Ins")
        .dtype_of_input("Ins")
        .infer([](InferContext& c) {
          check_rank(c, "Ins", 1, kMaxRank);
          check_same_dtype(c, "Out@GRAD", "Ins");
          const Shape &map = c.in("IndexMap").shape, &ins = c.in("Ins").shape, &dout = c.in("Out@GRAD").shape;
          AB_CHECK(map.rank() == 2 && (map[1] == 3 || map[1] == kUnknown) && c.in("IndexMap").dtype == DType::kInt64,
                   ShapeMismatch, "filter_by_instag_grad: IndexMap is {}, expected [samples, 3] of int64", map.str());
          AB_CHECK(dout.rank() == ins.rank() && compatible(dout.slice(1, dout.rank()), ins.slice(1, ins.rank())),
                   ShapeMismatch, "filter_by_instag_grad: Ins is {}, Out@GRAD is {}", ins.str(), dout.str());
          grad_as(c, "Ins@GRAD", "Ins", "Ins");
        })
        .no_grad(kNoSecondOrder)
        .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
          using T = typename decltype(tag)::type;
          return [map = op.in("IndexMap"), dout = op.in("Out@GRAD"), dx = op.out("Ins@GRAD")](KernelContext& c) {
            if (!c.wants(dx)) return;
            const int64_t width = c[dx].row_elems();
            T* to = c[dx].template mutable_data<T>();
            std::fill(to, to + c[dx].numel(), T{0});
            const int64_t* m = c[map].template data<int64_t>();
            for (int64_t i = 0; i < c[map].rows(); ++i, m += 3) {
              AB_CHECK(m[2] >= 0 && m[0] >= 0 && m[1] >= 0 && m[2] <= c[dout].rows() && m[0] <= c[dout].rows() - m[2] &&
                           m[2] <= c[dx].rows() && m[1] <= c[dx].rows() - m[2],
                       InvalidArgument, "filter_by_instag_grad: IndexMap names rows {}, {} and {} of them", m[0], m[1],
                       m[2]);
              std::copy_n(c[dout].data<T>() + m[0] * width, m[2] * width, to + m[1] * width);
            }
          };
        });

}  // namespace
}  // namespace anabranch
