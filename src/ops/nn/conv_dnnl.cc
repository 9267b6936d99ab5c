// float32 convolutions by oneDNN, except those of ops/nn/conv_pixels.h and ops/nn/conv_product.h. The batch is split
// into chunks that depend only on its size and the work per sample. A primitive chooses its memory layouts; operands
// are reordered into buffers that are kept.
#include <algorithm>
#include <vector>

#include "ops/kernels/dnnl.h"
#include "ops/nn/conv.h"
#include "ops/nn/conv_layouts.h"
#include "ops/nn/conv_pixels.h"
#include "ops/nn/conv_plain.h"
#include "ops/nn/conv_product.h"
#include "ops/nn/conv_rows.h"
#include "ops/nn/conv_ways.h"

namespace anabranch::nn {
namespace {

using dnnl::memory;

constexpr double kChunkFlops = 4e6;  // about 50 us of one core
constexpr int64_t kMaxChunks = 16;
constexpr int64_t kLeastPixels = 64;  // of a chunk
constexpr size_t kKeptShapes = 16;    // a plan holds buffers: batches of ever new shapes must not keep them all

// An operand in the layout of its tensor and in that of the primitive.
struct Operand {
  int arg = 0;
  memory::desc user, inner;
  dnnl::reorder reorder;  // towards the primitive for inputs, from it for the output; empty if equal
  bool converted() const { return user != inner; }
  void prepare(bool is_output) {
    if (!converted()) return;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto& from = is_output ? inner : user;
    const auto& to = is_output ? user : inner;
    reorder = dnnl::reorder(dnnl::reorder::primitive_desc(dnnl_engine(), from, dnnl_engine(), to, attr));
  }
};

// Memory of one operand in one chunk.
struct Bound {
  memory user, inner;
  explicit Bound(const Operand& o)
      : user(o.user, dnnl_engine(), DNNL_MEMORY_NONE),
        inner(o.inner, dnnl_engine(), o.converted() ? DNNL_MEMORY_ALLOCATE : DNNL_MEMORY_NONE) {}
  void set(const Operand& o, const float* data) {
    // The library takes inputs through pointers to mutable data, but does not write to them.
    (o.converted() ? user : inner).set_data_handle(const_cast<float*>(data));
  }
};

void reorder(const Operand& o, const memory& from, const memory& to) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
  execute(o.reorder, args);
}

// The library pads an image of one or two channels to a whole block and computes products with the zeros, except in the
// forward pass. Products of plain images have none.
bool wastes_blocks(const ConvDims& d) {
  return !d.channels_last && !d.input_last && d.groups == 1 && d.in_channels <= 2;
}

// One pass over `n` samples.
class ChunkPrimitive {
 public:
  ChunkPrimitive(ConvPass pass, const ConvDims& d, int64_t n, bool rounded) {
    ConvLayouts l(d, n), first(d, n);
    if (pass == ConvPass::kBackwardFilter && wastes_blocks(d)) {
      for (ConvLayouts* layouts : {&l, &first}) layouts->keep_plain(d, n);
    }
    if (rounded) {
      l.round_all_but(computed(pass));
      first.round_all_but(&ConvLayouts::result);
    }
    const auto direct = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    using Forward = dnnl::convolution_forward;
    const Forward::primitive_desc forward({dnnl::prop_kind::forward_training, direct, first.image, first.filter,
                                           first.result, l.stride, l.dilation, l.before, l.after},
                                          attr, dnnl_engine());
    const Operand user_image{DNNL_ARG_SRC, l.user_image, {}, {}};
    const Operand user_result{DNNL_ARG_DST, l.user_result, {}, {}};
    const Operand user_filter{DNNL_ARG_WEIGHTS, l.user_filter, {}, {}};
    if (pass == ConvPass::kForward) {
      finish(forward, {user_image, user_filter, user_result},
             {forward.src_desc(), forward.weights_desc(), forward.dst_desc()});
      primitive_ = Forward(forward);
    } else if (pass == ConvPass::kBackwardData) {
      using Backward = dnnl::convolution_backward_data;
      const Backward::primitive_desc made(
          {direct, l.image, l.filter, l.result, l.stride, l.dilation, l.before, l.after}, attr, dnnl_engine(), forward);
      finish(made, {user_result, user_filter, user_image},
             {made.diff_dst_desc(), made.weights_desc(), made.diff_src_desc()});
      rename(DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC);
      primitive_ = Backward(made);
    } else {
      using Backward = dnnl::convolution_backward_weights;
      const Backward::primitive_desc made(
          {direct, l.image, l.filter, l.result, l.stride, l.dilation, l.before, l.after}, attr, dnnl_engine(), forward);
      finish(made, {user_image, user_result, user_filter},
             {made.src_desc(), made.diff_dst_desc(), made.diff_weights_desc()});
      rename(DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS);
      primitive_ = Backward(made);
    }
  }

  // The filter, an input of all chunks, is reordered once for all of them.
  void set_filter(const float* filter) {
    if (filter_.empty()) filter_.emplace_back(operands_[1]);
    filter_[0].set(operands_[1], filter);
    if (operands_[1].converted()) reorder(operands_[1], filter_[0].user, filter_[0].inner);
  }

  void reserve(size_t slots) {
    while (slots_.size() < slots) {
      slots_.push_back(
          {Bound(operands_[0]), Bound(operands_[1]), Bound(operands_[2]), memory(scratch_, dnnl_engine())});
    }
  }

  // b == nullptr: keeps the filter of the previous call.
  void run(size_t slot, const float* a, const float* b, float* out) {
    Slot& s = slots_[slot];
    s.out.set(operands_[2], out);
    compute(s, a, b);
    if (operands_[2].converted()) reorder(operands_[2], s.out.inner, s.out.user);
  }

  // Likewise, with the result in the layout of the primitive: its elements, and the conversion from it.
  size_t inner_elems() const { return operands_[2].inner.get_size() / sizeof(float); }
  bool same_result(const ChunkPrimitive& other) const { return operands_[2].inner == other.operands_[2].inner; }
  void run_inner(size_t slot, const float* a, const float* b, float* out) {
    slots_[slot].out.inner.set_data_handle(out);
    compute(slots_[slot], a, b);
  }
  void convert(float* inner, float* out) {
    Slot& s = slots_[0];
    s.out.inner.set_data_handle(inner);
    s.out.user.set_data_handle(out);
    if (operands_[2].converted())
      reorder(operands_[2], s.out.inner, s.out.user);
    else
      std::copy_n(inner, inner_elems(), out);
  }

 private:
  struct Slot {
    Bound a, b, out;
    memory scratch;
  };

  void compute(Slot& s, const float* a, const float* b) {
    s.a.set(operands_[0], a);
    if (operands_[0].converted()) reorder(operands_[0], s.a.user, s.a.inner);
    if (b) {
      s.b.set(operands_[1], b);
      if (operands_[1].converted()) reorder(operands_[1], s.b.user, s.b.inner);
    }
    const dnnl_exec_arg_t args[] = {{operands_[0].arg, s.a.inner.get()},
                                    {operands_[1].arg, (b ? s.b : filter_[0]).inner.get()},
                                    {operands_[2].arg, s.out.inner.get()},
                                    {DNNL_ARG_SCRATCHPAD, s.scratch.get()}};
    execute(primitive_, args);
  }

  static memory::desc ConvLayouts::*computed(ConvPass pass) {
    if (pass == ConvPass::kForward) return &ConvLayouts::result;
    return pass == ConvPass::kBackwardData ? &ConvLayouts::image : &ConvLayouts::filter;
  }

  template <class Desc>
  void finish(const Desc& desc, std::vector<Operand> operands, const std::vector<memory::desc>& inner) {
    operands_ = std::move(operands);
    for (size_t k = 0; k < 3; ++k) {
      operands_[k].inner = inner[k];
      operands_[k].prepare(k == 2);
    }
    scratch_ = desc.scratchpad_desc();
  }

  void rename(int a, int b, int out) {
    operands_[0].arg = a;
    operands_[1].arg = b;
    operands_[2].arg = out;
  }

  std::vector<Operand> operands_;  // a, b, out
  memory::desc scratch_;
  dnnl::primitive primitive_;
  std::vector<Bound> filter_;  // at most one
  std::vector<Slot> slots_;
};

// Chunks of small images would add up gradients of the filter for longer than they compute them.
int64_t most_chunks(ConvPass pass, const ConvDims& d) {
  if (pass != ConvPass::kBackwardFilter) return kMaxChunks;
  return std::clamp<int64_t>(d.batch * volume(d.window.out) / kLeastPixels, 2, kMaxChunks);
}

// One pass for one shape.
class ConvPlan {
 public:
  ConvPlan(ConvPass pass, const ConvDims& d, bool rounded) : dims(d), pass_(pass) {
    const auto needed = static_cast<int64_t>(static_cast<double>(d.batch) * d.flops_per_sample() / kChunkFlops);
    const int64_t chunks = std::clamp<int64_t>(needed, 1, std::min(most_chunks(pass, d), d.batch));
    step_ = (d.batch + chunks - 1) / chunks;
    count_ = (d.batch + step_ - 1) / step_;
    const DnnlSingleThread alone;
    const int64_t rest = d.batch - (count_ - 1) * step_;
    full_ = std::make_unique<ChunkPrimitive>(pass, d, step_, rounded);
    if (rest != step_) last_ = std::make_unique<ChunkPrimitive>(pass, d, rest, rounded);
    for (auto* p : {full_.get(), last_.get()}) {
      if (p) p->reserve(static_cast<size_t>(count_));
    }
    if (pass == ConvPass::kBackwardFilter && count_ > 1) {
      inner_sums_ = !last_ || last_->same_result(*full_);
      part_ = inner_sums_ ? static_cast<int64_t>(full_->inner_elems()) : d.filter_elems();
      partial_.resize(static_cast<size_t>(count_ * part_));
    }
  }

  void run(const KernelContext& c, const float* a, const float* b, float* out, const ConvExtras& extras) {
    const bool filter_out = pass_ == ConvPass::kBackwardFilter;
    if (!filter_out) share_filter(b, extras.filter_version);
    const int64_t in = dims.in_elems(), result = dims.out_elems();
    const int64_t a_step = step_ * (pass_ == ConvPass::kBackwardData ? result : in);
    const int64_t b_step = step_ * result, out_step = step_ * (pass_ == ConvPass::kForward ? result : in);
    c.parallel_for(count_, 1, [&](int64_t begin, int64_t end) {
      const DnnlSingleThread alone;
      for (int64_t i = begin; i < end; ++i) {
        ChunkPrimitive& p = last_ && i + 1 == count_ ? *last_ : *full_;
        float* to = !filter_out ? out + i * out_step : count_ == 1 ? out : partial_.data() + i * part_;
        const auto run = inner_sums_ ? &ChunkPrimitive::run_inner : &ChunkPrimitive::run;
        (p.*run)(static_cast<size_t>(i), a + i * a_step, filter_out ? b + i * b_step : nullptr, to);
        if (extras.epilogue) {
          extras.epilogue->finish(i * step_ * result, std::min((i + 1) * step_, dims.batch) * result);
        }
      }
    });
    if (filter_out && count_ > 1) add_up(c, out);
  }

  ConvDims dims;

 private:
  void share_filter(const float* filter, uint64_t version) {
    if (version != 0 && version == filter_version_ && filter == filter_) return;
    filter_version_ = version;
    filter_ = filter;
    const DnnlSingleThread alone;
    full_->set_filter(filter);
    if (last_) last_->set_filter(filter);
  }

  // Onto the gradient from the first chunk, in the order of the chunks.
  void add_up(const KernelContext& c, float* out) {
    float* sum = partial_.data();
    c.parallel_for(part_, 8192, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = 1; chunk < count_; ++chunk) {
        const float* from = partial_.data() + chunk * part_;
        for (int64_t k = begin; k < end; ++k) sum[k] += from[k];
      }
    });
    const DnnlSingleThread alone;
    if (inner_sums_)
      full_->convert(sum, out);
    else
      std::copy_n(sum, part_, out);
  }

  ConvPass pass_;
  int64_t step_ = 0, count_ = 0;
  std::unique_ptr<ChunkPrimitive> full_, last_;
  const float* filter_ = nullptr;  // the filter that the primitives hold, see ConvExtras
  uint64_t filter_version_ = 0;
  std::vector<float> partial_;  // gradients of the filter from the samples of each chunk
  int64_t part_ = 0;            // elements of one of them
  bool inner_sums_ = false;     // they are in the layout of the primitive, and only their sum is converted
};

// The plan of a shape: its rows, or the library's primitives.
struct KeptPlan {
  ConvDims dims;
  std::unique_ptr<RowConv> rows;
  std::unique_ptr<ConvPlan> library;
};

}  // namespace

template <> struct Conv<float>::Impl {
  Impl(ConvPass p, bool lower) : pass(p), rounded(lower), product(p) {}

  KeptPlan& plan(const ConvDims& d) {
    if (!plans.empty() && plans.front().dims == d) return plans.front();
    auto it = std::find_if(plans.begin(), plans.end(), [&](const KeptPlan& p) { return p.dims == d; });
    if (it == plans.end()) {
      if (plans.size() == kKeptShapes) plans.pop_back();
      it = plans.insert(plans.end(), KeptPlan{.dims = d, .rows = nullptr, .library = nullptr});
      if (!rounded && !d.window.crops() && rows_are_faster(pass, d)) it->rows = std::make_unique<RowConv>(pass, d);
    }
    std::rotate(plans.begin(), it, it + 1);
    return plans.front();
  }

  ConvPass pass;
  bool rounded;
  PixelConv pixels;
  ProductConv product;
  std::vector<KeptPlan> plans;  // the last used ones, latest first
};

template <>
Conv<float>::Conv(ConvPass pass, anabranch::Operand operand)
    : impl_(std::make_unique<Impl>(pass, operand == anabranch::Operand::kBfloat16)) {}
template <> Conv<float>::~Conv() = default;

template <>
void Conv<float>::run(const KernelContext& c, const ConvDims& given, const float* a, const float* b, float* out,
                      const ConvExtras& extras) {
  const ConvDims d = in_one_row(given);
  const bool plain = d.window.crops();
  if (plain && impl_->pass == ConvPass::kBackwardFilter) return plain_conv_filter(c, d, a, b, out);
  KeptPlan& plan = impl_->plan(d);
  if (plan.rows) return plan.rows->run(c, a, b, out, extras);
  if (!plain && impl_->pass == ConvPass::kForward && !impl_->rounded && PixelConv::suits(d)) {
    return impl_->pixels.run(c, d, a, b, out, extras);
  }
  if (plain || (impl_->pass != ConvPass::kBackwardFilter && !impl_->rounded && plain_is_faster(d))) {
    return plain_conv_images(c, impl_->pass == ConvPass::kForward, d, a, b, out, extras.epilogue);
  }
  if (!impl_->rounded && ProductConv::suits(d)) return impl_->product.run(c, d, a, b, out, extras);
  if (!plan.library) {
    plan.library = std::make_unique<ConvPlan>(impl_->pass, in_one_row(across_as_channels(d)), impl_->rounded);
  }
  plan.library->run(c, a, b, out, extras);
}

}  // namespace anabranch::nn
