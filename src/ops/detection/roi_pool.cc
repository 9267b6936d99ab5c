// Pools regions by the largest pixel of each bin.
#include <limits>

#include "ops/detection/bin_taps.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection::roi_pool_op {
namespace {

constexpr int64_t kFar = int64_t{1} << 40;  // pixels; larger than any image

// A region along one axis, in whole pixels.
template <class T> struct Span {
  int64_t begin;
  T bin;
  Span(T low, T high, T scale, int64_t bins)
      : begin(clamped(std::round(low * scale), -kFar, kFar)),
        bin(static_cast<T>(std::max<int64_t>(clamped(std::round(high * scale), -kFar, kFar) - begin + 1, 1)) /
            static_cast<T>(bins)) {}
  int64_t first(int64_t b, int64_t extent) const {
    return std::clamp<int64_t>(static_cast<int64_t>(std::floor(static_cast<T>(b) * bin)) + begin, 0, extent);
  }
  int64_t end(int64_t b, int64_t extent) const {
    return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(static_cast<T>(b + 1) * bin)) + begin, 0, extent);
  }
};

// The largest pixel of each bin of a plane and its index, or 0 and -1 for a bin outside of the image.
template <class T>
void pool_plane(const Pooled& p, const Span<T>& down, const Span<T>& across, const T* plane, T* out, int64_t* place) {
  for (int64_t b = 0; b < p.bins(); ++b) {
    const int64_t i = b / p.columns, j = b % p.columns;
    const int64_t top = down.first(i, p.height), bottom = down.end(i, p.height);
    const int64_t left = across.first(j, p.width), right = across.end(j, p.width);
    const bool empty = top >= bottom || left >= right;
    T most = empty ? T(0) : -std::numeric_limits<T>::max();
    int64_t at = -1;
    for (int64_t row = top; row < bottom; ++row) {
      for (int64_t column = left; column < right; ++column) {
        const int64_t k = row * p.width + column;
        if (plane[k] > most) {
          most = plane[k];
          at = k;
        }
      }
    }
    if (empty) at = -1;
    out[b] = most;
    if (place) place[b] = at;
  }
}

AB_OP(roi_pool)
    .doc(
        "Out[r, c, i, j] = the largest pixel of X in bin (i, j) of region r, whose sides are rounded to pixels; 0 if "
        "the bin has no pixel.")
    .source("Girshick, Fast R-CNN, ICCV 2015, arXiv:1504.08083")
    .in("X", "[N, C, H, W] float")
    .in("ROIs", "[rois, 4] like X: left, top, right, bottom, with a sequence for each image")
    .in_optional("RoisLod", "[N + 1] int64: the offsets of each image's regions, if ROIs has no LoD")
    .out("Out", "[rois, C, pooled_height, pooled_width]")
    .out_intermediate("Argmax", "like Out, int64: index of the pixel in the plane of X, -1 for none")
    .with(pool_attrs)
    .infer([](InferContext& c) {
      check_rois(c, "X", 4, "RoisLod", 1);
      const Shape out = pooled_shape(c, c.in("X").shape[1]);
      c.set_out("Out", out, c.in("X").dtype);
      c.set_out("Argmax", out, DType::kInt64);
    })
    .grad_reads({"X", "ROIs", "RoisLod"}, {"Argmax"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [owners = Owners(), scale = static_cast<T>(op.attr<float>("spatial_scale")), x = op.in("X"),
              rois = op.in("ROIs"), offsets = op.in("RoisLod"), out = op.out("Out"),
              argmax = op.out("Argmax")](KernelContext& c) mutable {
        const Pooled p(c[x].shape(), c[out].shape());
        const int64_t n = c[rois].shape()[0];
        const auto& image = offsets ? owners.by_offsets(c[offsets], n) : owners.by_sequences(c[rois]);
        const T *from = c[x].data<T>(), *boxes = c[rois].data<T>();
        T* to = c[out].mutable_data<T>();
        int64_t* places = needed<int64_t>(c, argmax);
        c.parallel_each(n * p.channels, kBinGrain / p.bins() + 1, [&](int64_t k) {
          const T* box = boxes + k / p.channels * 4;
          const Span<T> down(box[1], box[3], scale, p.rows), across(box[0], box[2], scale, p.columns);
          const int64_t plane = image[static_cast<size_t>(k / p.channels)] * p.channels + k % p.channels;
          pool_plane(p, down, across, from + plane * p.plane(), to + k * p.bins(),
                     places ? places + k * p.bins() : nullptr);
        });
      };
    });

AB_GRAD(roi_pool)
    .doc("X@GRAD = the sum of Out@GRAD over the bins whose largest pixel it is.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [owners = Owners(), rois = op.in("ROIs"), offsets = op.in("RoisLod"), argmax = op.in("Argmax"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
        const Pooled p(c[dx].shape(), c[dout].shape());
        const int64_t n = c[rois].shape()[0];
        const auto& image = offsets ? owners.by_offsets(c[offsets], n) : owners.by_sequences(c[rois]);
        const int64_t* places = c[argmax].data<int64_t>();
        const T* d = c[dout].data<T>();
        T* to = zeroed<T>(c, dx);
        c.parallel_for(p.channels, kBinGrain / (n * p.bins() + 1) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t r = 0; r < n; ++r) {
            T* planes = to + image[static_cast<size_t>(r)] * p.channels * p.plane();
            for (int64_t k = begin * p.bins(); k < end * p.bins(); ++k) {
              const int64_t at = places[r * p.channels * p.bins() + k];
              AB_CHECK(at < p.plane(), InvalidArgument, "Argmax must hold indices below {}, got {}", p.plane(), at);
              if (at >= 0) planes[k / p.bins() * p.plane() + at] += d[r * p.channels * p.bins() + k];
            }
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::roi_pool_op
