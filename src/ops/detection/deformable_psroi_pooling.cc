// Position-sensitive pooling of regions by samples in bins that are moved; each bin has its own channels.
#include <fmt/ranges.h>

#include "ops/detection/moved_bins.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection::deformable_psroi_pooling_op {
namespace {

using Ints = std::vector<int32_t>;

constexpr int32_t kMostSamples = 256;

int64_t positive(const InferContext& c, const char* name) {
  const int64_t n = c.attr<int32_t>(name);
  AB_CHECK(n > 0, InvalidArgument, "{} must be above 0, got {}", name, n);
  return n;
}

const Ints& sizes(const InferContext& c, const char* name) {
  const auto& v = c.attr<Ints>(name);
  AB_CHECK(v.size() == 2 && v[0] > 0 && v[1] > 0, InvalidArgument, "{} must be 2 numbers above 0, got [{}]", name,
           fmt::join(v, ", "));
  return v;
}

void infer(InferContext& c) {
  check_rois(c, "Input", 4);
  check_rank(c, "Trans", 4, 4);
  const Ints &group = sizes(c, "group_size"), &part = sizes(c, "part_size");
  const int64_t made = positive(c, "output_dim"), samples = positive(c, "sample_per_part");
  AB_CHECK(samples <= kMostSamples, InvalidArgument, "sample_per_part must be at most {}, got {}", kMostSamples,
           samples);
  const Shape &x = c.in("Input").shape, &trans = c.in("Trans").shape;
  AB_CHECK(x[1] == kUnknown || (x[1] / group[0] / group[1] == made && x[1] % (int64_t{group[0]} * group[1]) == 0),
           ShapeMismatch, "Input must have output_dim * group_size channels ({} * {} * {}), got {}", made, group[0],
           group[1], x.str());
  if (!c.attr<bool>("no_trans")) {
    check_shape(c, "Trans", {c.in("ROIs").shape[0], kUnknown, part[0], part[1]});
    AB_CHECK(trans[1] == kUnknown || (trans[1] > 1 && trans[1] % 2 == 0 && made % (trans[1] / 2) == 0), ShapeMismatch,
             "Trans must have 2 channels per class, and the number of classes must divide output_dim ({}), got {}",
             made, trans.str());
  }
  if (c.runtime()) check_same_dtype(c, "Trans", "Input");
  const Shape out = pooled_shape(c, made);
  c.set_out("Output", out, c.in("Input").dtype);
  c.set_out("TopCount", out, c.in("Input").dtype);
}

constexpr auto pool = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [rule = MovedRule<T>(op), owners = Owners(), x = op.in("Input"), rois = op.in("ROIs"), trans = op.in("Trans"),
          out = op.out("Output"), count = op.out("TopCount")](KernelContext& c) mutable {
    const MovedBins<T> bins(rule, c[x].shape(), c[out].shape(), c[trans].shape());
    const auto& image = owners.by_sequences(c[rois]);
    const T *from = c[x].data<T>(), *boxes = c[rois].data<T>(), *moves = c[trans].data<T>();
    T *to = c[out].mutable_data<T>(), *counts = needed<T>(c, count);
    const Pooled& p = bins.pooled();
    const int64_t made = c[out].shape()[1];
    c.parallel_each(c[out].numel(), kBinGrain, [&](int64_t k) {
      const int64_t r = k / (made * p.bins());
      const MovedBin<T> bin = bins.at(boxes + 4 * r, moves, r, k / p.bins() % made, k % p.bins());
      const T* plane = from + (image[static_cast<size_t>(r)] * p.channels + bin.channel) * p.plane();
      T sum = 0;
      const int64_t n = bins.each(bin, [&](const BinSample<T>& s) { sum += s.of(plane, s.weight); });
      to[k] = n ? sum / static_cast<T>(n) : T(0);
      if (counts) counts[k] = static_cast<T>(n);
    });
  };
};

template <class T> struct Gradient {
  MovedRule<T> rule;
  Owners owners;
  In x, rois, trans, count, dout;
  Out dx, dtrans;
  explicit Gradient(const KernelArgs& op)
      : rule(op),
        x(op.in("Input")),
        rois(op.in("ROIs")),
        trans(op.in("Trans")),
        count(op.in("TopCount")),
        dout(op.in("Output@GRAD")),
        dx(op.out("Input@GRAD")),
        dtrans(op.out("Trans@GRAD")) {}

  // Calls fn(k, bin, weight) for the bins of channels [begin, end) of region r that have samples.
  template <class Fn>
  void each(const KernelContext& c, const MovedBins<T>& bins, int64_t r, int64_t begin, int64_t end, Fn&& fn) const {
    const int64_t made = c[dout].shape()[1], each_bin = bins.pooled().bins();
    for (int64_t k = begin * each_bin; k < end * each_bin; ++k) {
      const int64_t at = r * made * each_bin + k;
      const T n = c[count].data<T>()[at];
      if (!(n > 0)) continue;
      fn(bins.at(c[rois].data<T>() + 4 * r, c[trans].data<T>(), r, k / each_bin, k % each_bin),
         c[dout].data<T>()[at] / n);
    }
  }

  void run(KernelContext& c) {
    const MovedBins<T> bins(rule, c[x].shape(), c[dout].shape(), c[trans].shape());
    const auto& image = owners.by_sequences(c[rois]);
    const auto n = static_cast<int64_t>(image.size()), made = c[dout].shape()[1];
    const Pooled& p = bins.pooled();
    const auto plane_of = [&](int64_t r, int64_t channel) {
      return (image[static_cast<size_t>(r)] * p.channels + channel) * p.plane();
    };
    if (T* to = zeroed<T>(c, dx)) {  // no two output channels share an input channel
      c.parallel_for(made, kBinGrain / (n * p.bins() + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = 0; r < n; ++r) {
          each(c, bins, r, begin, end, [&](const MovedBin<T>& bin, T d) {
            T* plane = to + plane_of(r, bin.channel);
            bins.each(bin, [&](const BinSample<T>& s) {
              for (size_t q = 0; q < 4; ++q) plane[s.at[q]] += d * s.weight[q];
            });
          });
        }
      });
    }
    T* moves = zeroed<T>(c, dtrans);
    if (!moves || !rule.moved) return;
    const T* from = c[x].data<T>();
    c.parallel_each(n, 1, [&](int64_t r) {
      each(c, bins, r, 0, made, [&](const MovedBin<T>& bin, T d) {
        const T* plane = from + plane_of(r, bin.channel);
        bins.each(bin, [&](const BinSample<T>& s) {
          moves[bin.trans] += d * s.of(plane, s.right) * rule.deviation * bin.region_width;
          moves[bin.trans + bins.part_plane()] += d * s.of(plane, s.down) * rule.deviation * bin.region_height;
        });
      });
    });
  }
};

AB_OP(deformable_psroi_pooling)
    .doc(
        "Output[r, c, i, j] = the mean of sample_per_part x sample_per_part samples of Input in bin (i, j) of region "
        "r, moved by trans_std * Trans times the size of the region; it reads channel (c gh + floor(i gh / "
        "pooled_height)) gw + floor(j gw / pooled_width) of Input, with group_size [gh, gw].")
    .source("Dai et al., Deformable convolutional networks, ICCV 2017, arXiv:1703.06211")
    .in("Input", "[N, output_dim * gh * gw, H, W] float")
    .in("ROIs", "[rois, 4] like Input: left, top, right, bottom, with a sequence for each image")
    .in("Trans", "[rois, 2 * classes, part_size] like Input: offsets to the right and downwards, per class of channels")
    .out("TopCount", "like Output: number of samples inside the image")
    .out("Output", "[rois, output_dim, pooled_height, pooled_width]")
    .required_attr("no_trans", AttrType::kBoolean, "true: ignores Trans")
    .required_attr("spatial_scale", AttrType::kFloat, "pixels of Input for a pixel of the image, above 0")
    .required_attr("output_dim", AttrType::kInt, "number of channels of Output, above 0")
    .required_attr("group_size", AttrType::kInts, "[gh, gw]")
    .required_attr("pooled_height", AttrType::kInt, "rows of bins, above 0")
    .required_attr("pooled_width", AttrType::kInt, "columns of bins, above 0")
    .required_attr("part_size", AttrType::kInts, "rows and columns of Trans")
    .required_attr("sample_per_part", AttrType::kInt, "samples of a bin along each axis")
    .required_attr("trans_std", AttrType::kFloat, "factor for Trans")
    .infer(infer)
    .grad_reads({"Input", "ROIs", "Trans"}, {"TopCount"})
    .grad_from({"Output"})
    .grad_to({"Input", "Trans"})
    .dtype_of_input("Input")
    .cpu<float, double>(pool);

AB_GRAD(deformable_psroi_pooling)
    .doc(
        "Input@GRAD distributes Output@GRAD equally over the samples; Trans@GRAD = the change of the samples as the "
        "bins move.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [grad = Gradient<T>(op)](KernelContext& c) mutable { grad.run(c); };
    });

}  // namespace
}  // namespace anabranch::detection::deformable_psroi_pooling_op
