// Position-sensitive pooling of regions by the mean of each bin; each bin has its own channels.
#include "ops/detection/bin_taps.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection::psroi_pool_op {
namespace {

constexpr int64_t kFar = int64_t{1} << 40;

// Pixels [first, stop) of a bin along one axis; empty if stop <= first.
struct Range {
  int64_t first, stop;
};

// The bins of a region along one axis.
template <class T> void add_bins(T low, T high, T scale, int64_t bins, int64_t extent, std::vector<Range>* to) {
  const T begin = std::round(low) * scale, end = (std::round(high) + 1) * scale;
  const T bin = std::max(end - begin, T(0.1)) / static_cast<T>(bins);
  for (int64_t b = 0; b < bins; ++b) {
    const int64_t first = std::max<int64_t>(clamped(std::floor(static_cast<T>(b) * bin + begin), -kFar, kFar), 0);
    const int64_t stop = std::min(clamped(std::ceil(static_cast<T>(b + 1) * bin + begin), -kFar, kFar), extent);
    to->push_back({first, stop});
  }
}

// The bins of all regions, and state kept from step to step.
template <class T> struct Bins {
  T scale;
  In rois;
  Owners owners;
  std::vector<Range> down, across;
  explicit Bins(const KernelArgs& op) : scale(static_cast<T>(op.attr<float>("spatial_scale"))), rois(op.in("ROIs")) {}

  const std::vector<int32_t>& find(const KernelContext& c, const Pooled& p) {
    down.clear();
    across.clear();
    const T* box = c[rois].data<T>();
    for (int64_t r = 0; r < c[rois].shape()[0]; ++r, box += 4) {
      add_bins(box[0], box[2], scale, p.columns, p.width, &across);
      add_bins(box[1], box[3], scale, p.rows, p.height, &down);
    }
    return owners.by_sequences(c[rois]);
  }

  // Calls fn(index in the row of Out, rows, columns) for the bins of region r: bin (i, j), channel by channel.
  template <class Fn> void each_bin(int64_t r, const Pooled& p, int64_t begin, int64_t end, Fn&& fn) const {
    const Range *rows = down.data() + r * p.rows, *columns = across.data() + r * p.columns;
    int64_t i = begin / p.columns % p.rows, j = begin % p.columns;
    for (int64_t k = begin; k < end; ++k) {
      fn(k, rows[i], columns[j]);
      if (++j < p.columns) continue;
      j = 0;
      i = i + 1 < p.rows ? i + 1 : 0;
    }
  }
};

template <class T> T mean(const T* plane, int64_t width, const Range& rows, const Range& columns) {
  if (rows.first >= rows.stop || columns.first >= columns.stop) return 0;
  T sum = 0;
  for (int64_t i = rows.first; i < rows.stop; ++i) {
    for (int64_t j = columns.first; j < columns.stop; ++j) sum += plane[i * width + j];
  }
  return sum / static_cast<T>((rows.stop - rows.first) * (columns.stop - columns.first));
}

template <class T> void share_out(T value, T* plane, int64_t width, const Range& rows, const Range& columns) {
  if (rows.first >= rows.stop || columns.first >= columns.stop) return;
  const T share = value / static_cast<T>((rows.stop - rows.first) * (columns.stop - columns.first));
  for (int64_t i = rows.first; i < rows.stop; ++i) {
    for (int64_t j = columns.first; j < columns.stop; ++j) plane[i * width + j] += share;
  }
}

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
        "r, whose sides are rounded to pixels of the image; 0 if the bin has no pixel.")
    .source("Dai et al., R-FCN, NIPS 2016, arXiv:1605.06409")
    .in("X", "[N, output_channels * pooled_height * pooled_width, H, W] float")
    .in("ROIs", "[rois, 4] like X: left, top, right, bottom, with a sequence for each image")
    .out("Out", "[rois, output_channels, pooled_height, pooled_width]")
    .required_attr("output_channels", AttrType::kInt, "number of channels of Out, above 0")
    .with(pool_attrs)
    .infer(infer)
    .grad_reads({"X", "ROIs"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [bins = Bins<T>(op), x = op.in("X"), out = op.out("Out")](KernelContext& c) mutable {
        const Pooled p(c[x].shape(), c[out].shape());
        const auto& image = bins.find(c, p);
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_each(static_cast<int64_t>(image.size()), kBinGrain / p.channels + 1, [&](int64_t r) {
          const T* planes = from + image[static_cast<size_t>(r)] * p.channels * p.plane();
          bins.each_bin(r, p, 0, p.channels, [&](int64_t k, const Range& rows, const Range& columns) {
            to[r * p.channels + k] = mean(planes + k * p.plane(), p.width, rows, columns);
          });
        });
      };
    });

AB_GRAD(psroi_pool)
    .doc("X@GRAD distributes Out@GRAD equally over the pixels of its bin.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [bins = Bins<T>(op), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
        const Pooled p(c[dx].shape(), c[dout].shape());
        const auto& image = bins.find(c, p);
        const T* d = c[dout].data<T>();
        T* to = zeroed<T>(c, dx);
        const auto rois = static_cast<int64_t>(image.size());
        c.parallel_for(p.channels, kBinGrain / (rois + 1) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t r = 0; r < rois; ++r) {
            T* planes = to + image[static_cast<size_t>(r)] * p.channels * p.plane();
            bins.each_bin(r, p, begin, end, [&](int64_t k, const Range& rows, const Range& columns) {
              share_out(d[r * p.channels + k], planes + k * p.plane(), p.width, rows, columns);
            });
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::psroi_pool_op
