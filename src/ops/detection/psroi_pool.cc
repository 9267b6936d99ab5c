// Regions pooled by the mean of each bin, every bin from channels of its own.
#include "ops/detection/bin_taps.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection {
namespace {

constexpr int64_t kFar = int64_t{1} << 40;

// The pixels of the bins of a region along one axis.
template <class T> void add_bins(T low, T high, T scale, int64_t bins, int64_t extent, BinTaps<T>* to) {
  const T begin = std::round(low) * scale, end = (std::round(high) + 1) * scale;
  const T bin = std::max(end - begin, T(0.1)) / static_cast<T>(bins);
  for (int64_t b = 0; b < bins; ++b) {
    const int64_t first = std::max<int64_t>(clamped(std::floor(static_cast<T>(b) * bin + begin), -kFar, kFar), 0);
    const int64_t stop = std::min(clamped(std::ceil(static_cast<T>(b + 1) * bin + begin), -kFar, kFar), extent);
    for (int64_t at = first; at < stop; ++at) to->add(at, T(1) / static_cast<T>(stop - first));
    to->close_bin();
  }
}

// Bins of all regions; what is kept from step to step.
template <class T> struct Bins {
  T scale;
  In rois;
  Owners owners;
  BinTaps<T> down, across;
  explicit Bins(const KernelArgs& op) : scale(static_cast<T>(op.attr<float>("spatial_scale"))), rois(op.in("ROIs")) {}

  const std::vector<int32_t>& find(const KernelContext& c, const Pooled& p) {
    down.clear();
    across.clear();
    const T* box = c[rois].template data<T>();
    for (int64_t r = 0; r < c[rois].shape()[0]; ++r, box += 4) {
      add_bins(box[0], box[2], scale, p.columns, p.width, &across);
      add_bins(box[1], box[3], scale, p.rows, p.height, &down);
    }
    return owners.by_sequences(c[rois]);
  }
};

void infer(InferContext& c) {
  check_rois(c, "X", 4);
  const int32_t channels = c.attr<int32_t>("output_channels");
  AB_CHECK(channels > 0, InvalidArgument, "output_channels must be above 0, got {}", channels);
  const Shape out = pooled_shape(c, channels), &x = c.in("X").shape;
  AB_CHECK(x[1] == kUnknown || (x[1] / channels == out[2] * out[3] && x[1] % channels == 0), ShapeMismatch,
           "X must have output_channels * pooled_height * pooled_width channels ({} * {} * {}), got {}", channels,
           out[2], out[3], x.str());
  c.set_out("Out", out, c.in("X").dtype);
}

AB_OP(psroi_pool)
    .doc(
        "Out[r, c, i, j] = the mean of channel (c pooled_height + i) pooled_width + j of X over bin (i, j) of region "
        "r, whose sides are rounded to pixels of the image; 0 where no pixel is in it.")
    .source("Dai et al., R-FCN, NIPS 2016, arXiv:1605.06409")
    .in("X", "[N, output_channels * pooled_height * pooled_width, H, W] float")
    .in("ROIs", "[rois, 4] as X: left, top, right, bottom, with a sequence for each image")
    .out("Out", "[rois, output_channels, pooled_height, pooled_width]")
    .required_attr("output_channels", AttrType::kInt, "channels of Out, above 0")
    .with(pool_attrs)
    .infer(infer)
    .grad_reads({"X", "ROIs"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [bins = Bins<T>(op), x = op.in("X"), out = op.out("Out")](KernelContext& c) mutable {
        const Pooled p(c[x].shape(), c[out].shape());
        const auto& image = bins.find(c, p);
        const T* from = c[x].template data<T>();
        T* to = c[out].template mutable_data<T>();
        c.parallel_for(c[out].numel(), kBinGrain, [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) {
            const int64_t r = k / p.channels, channel = k % p.channels, b = channel % p.bins();
            to[k] = gather(from + (image[static_cast<size_t>(r)] * p.channels + channel) * p.plane(), p.width,
                           bins.down, r * p.rows + b / p.columns, bins.across, r * p.columns + b % p.columns);
          }
        });
      };
    });

AB_GRAD(psroi_pool)
    .doc("X@GRAD = Out@GRAD in equal shares for the pixels of its bin.")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [bins = Bins<T>(op), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
        const Pooled p(c[dx].shape(), c[dout].shape());
        const auto& image = bins.find(c, p);
        const T* d = c[dout].template data<T>();
        T* to = zeroed<T>(c, dx);
        const auto rois = static_cast<int64_t>(image.size());
        c.parallel_for(p.channels, kBinGrain / (rois + 1) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t r = 0; r < rois; ++r) {
            for (int64_t k = begin; k < end; ++k) {
              const int64_t b = k % p.bins();
              scatter(d[r * p.channels + k], to + (image[static_cast<size_t>(r)] * p.channels + k) * p.plane(), p.width,
                      bins.down, r * p.rows + b / p.columns, bins.across, r * p.columns + b % p.columns);
            }
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection
