// Pools regions by samples between pixels. The four pixels around a sample are weighted by the product of a row weight
// and a column weight, so the samples of a bin are summed along each axis first.
#include <cmath>

#include "ops/detection/bin_taps.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection::roi_align_op {
namespace {

constexpr int32_t kMostSamples = 4096;

// A sample at `at` of an axis: the two pixels around it; a sample more than a pixel outside of the image counts as 0.
template <class T> void add_sample(T at, int64_t extent, T share, BinTaps<T>* to) {
  if (!(at >= T(-1) && at <= static_cast<T>(extent)) || extent == 0) return;
  at = std::max(at, T(0));
  const auto low = static_cast<int64_t>(at);
  if (low >= extent - 1) return to->add(extent - 1, share);
  const T part = at - static_cast<T>(low);
  to->add(low, (1 - part) * share);
  to->add(low + 1, part * share);
}

// The bins of a region along one axis.
template <class T> void add_bins(T begin, T end, int64_t bins, int32_t samples, int64_t extent, BinTaps<T>* to) {
  const T size = std::max(end - begin, T(1)), bin = size / static_cast<T>(bins);
  const T count = samples > 0 ? static_cast<T>(samples) : std::ceil(size / static_cast<T>(bins)), step = bin / count;
  for (int64_t b = 0; b < bins; ++b) {
    const T first = begin + static_cast<T>(b) * bin;
    // Skips samples further outside: their number is unbounded.
    const int64_t most = clamped(count, 0, int64_t{1} << 40);
    const int64_t from = clamped((T(-1) - first) / step - 2, 0, most);
    const int64_t stop = clamped((static_cast<T>(extent) - first) / step + 2, 0, most);
    for (int64_t i = from; i < stop; ++i) {
      add_sample(first + (static_cast<T>(i) + T(0.5)) * bin / count, extent, 1 / count, to);
    }
    to->close_bin();
  }
}

// State kept from step to step.
template <class T> class Samples {
 public:
  explicit Samples(const KernelArgs& op)
      : samples_(op.attr<int32_t>("sampling_ratio")),
        scale_(static_cast<T>(op.attr<float>("spatial_scale"))),
        boxes_(op.in("ROIs")),
        offsets_(op.in("RoisLod")) {}

  void find(const KernelContext& c, const Pooled& p) {
    const int64_t rois = c[boxes_].shape()[0];
    image = offsets_ ? &owners_.by_offsets(c[offsets_], rois) : &owners_.by_sequences(c[boxes_]);
    down.clear();
    across.clear();
    const T* box = c[boxes_].data<T>();
    for (int64_t r = 0; r < rois; ++r, box += 4) {
      add_bins(box[0] * scale_, box[2] * scale_, p.columns, samples_, p.width, &across);
      add_bins(box[1] * scale_, box[3] * scale_, p.rows, samples_, p.height, &down);
    }
  }

  const std::vector<int32_t>* image = nullptr;
  BinTaps<T> down, across;

 private:
  int32_t samples_;
  T scale_;
  In boxes_, offsets_;
  Owners owners_;
};

AB_OP(roi_align)
    .doc(
        "Out[r, c, i, j] = the mean of samples of X in bin (i, j) of region r, which has pooled_height x pooled_width "
        "bins and is at least 1 pixel high and wide; each sample interpolates the four pixels around it.")
    .source("He et al., Mask R-CNN, ICCV 2017, arXiv:1703.06870")
    .in("X", "[N, C, H, W] float")
    .in("ROIs", "[rois, 4] like X: left, top, right, bottom, with a sequence for each image")
    .in_optional("RoisLod", "[N + 1] int64: the offsets of each image's regions, if ROIs has no LoD")
    .out("Out", "[rois, C, pooled_height, pooled_width]")
    .with(pool_attrs)
    .attr<int32_t>("sampling_ratio", -1, "samples of a bin along each axis; 0 or below: one per pixel, rounded up")
    .infer([](InferContext& c) {
      check_rois(c, "X", 4, "RoisLod", 1);
      const int32_t samples = c.attr<int32_t>("sampling_ratio");
      AB_CHECK(samples <= kMostSamples, InvalidArgument, "sampling_ratio must be at most {}, got {}", kMostSamples,
               samples);
      c.set_out("Out", pooled_shape(c, c.in("X").shape[1]), c.in("X").dtype);
    })
    .grad_reads({"X", "ROIs", "RoisLod"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [samples = Samples<T>(op), x = op.in("X"), out = op.out("Out")](KernelContext& c) mutable {
        const Pooled p(c[x].shape(), c[out].shape());
        samples.find(c, p);
        pool_bins(c, p, *samples.image, samples.down, samples.across, c[x].data<T>(), c[out].mutable_data<T>());
      };
    });

AB_GRAD(roi_align)
    .doc("X@GRAD = Out@GRAD distributed over the pixels that each sample interpolates.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [samples = Samples<T>(op), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
        const Pooled p(c[dx].shape(), c[dout].shape());
        samples.find(c, p);
        T* to = zeroed<T>(c, dx);
        share_out_bins(c, p, *samples.image, samples.down, samples.across, c[dout].data<T>(), to);
      };
    });

}  // namespace
}  // namespace anabranch::detection::roi_align_op
