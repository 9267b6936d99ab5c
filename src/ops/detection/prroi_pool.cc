// Precise RoI pooling: the exact mean, over each bin, of the surface that interpolates linearly between pixels. Row and
// column weights multiply, so each axis is integrated separately.
#include <cmath>

#include "ops/detection/bin_taps.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection::prroi_pool_op {
namespace {

// A bin from `begin` of length `size`: its pixels weighted by their share of the integral, over `size`.
template <class T> void add_bin(T begin, T size, int64_t extent, BinTaps<T>* to) {
  const T end = begin + size;
  // Cell k reaches from pixel k to pixel k + 1; pixels outside of the image are 0.
  const int64_t first = clamped(std::floor(begin), -1, extent), stop = clamped(std::ceil(end), -1, extent);
  for (int64_t k = first; size > 0 && k < stop; ++k) {
    const T from = std::max(begin - static_cast<T>(k), T(0)), till = std::min(end - static_cast<T>(k), T(1));
    const T all = (till - from) / size, far = all * (till + from) / 2;
    if (k >= 0) to->add(k, all - far);
    if (k + 1 < extent) to->add(k + 1, far);
  }
  to->close_bin();
}

// Adds the weights of the pixels on both sides of `at`, the border of a bin.
template <class T> void add_edge(T at, int64_t extent, BinTaps<T>* to) {
  if (at > T(-1) && at < static_cast<T>(extent)) {
    const T low = std::floor(at);
    const auto k = static_cast<int64_t>(low);
    if (k >= 0) to->add(k, 1 - (at - low));
    if (k + 1 < extent) to->add(k + 1, at - low);
  }
  to->close_bin();
}

// One axis of all regions.
template <class T> struct Axis {
  BinTaps<T> bins, edges;
  std::vector<T> sizes;  // of the bins of each region
  void clear() {
    bins.clear();
    edges.clear();
    sizes.clear();
  }
  void add(T begin, T end, int64_t count, int64_t extent, bool with_edges) {
    const T size = std::max(end - begin, T(0)) / static_cast<T>(count);
    sizes.push_back(size);
    for (int64_t b = 0; b < count; ++b) add_bin(begin + size * static_cast<T>(b), size, extent, &bins);
    for (int64_t b = 0; with_edges && b <= count; ++b) add_edge(begin + size * static_cast<T>(b), extent, &edges);
  }
};

// State kept from step to step.
template <class T> class Regions {
 public:
  explicit Regions(const KernelArgs& op)
      : scale(static_cast<T>(op.attr<float>("spatial_scale"))), rois_(op.in("ROIs")), counts_(op.in("BatchRoINums")) {}

  void find(const KernelContext& c, const Pooled& p, bool with_edges) {
    down.clear();
    across.clear();
    const int64_t n = c[rois_].shape()[0];
    const T* box = c[rois_].data<T>();
    for (int64_t r = 0; r < n; ++r, box += 4) {
      across.add(box[0] * scale, box[2] * scale, p.columns, p.width, with_edges);
      down.add(box[1] * scale, box[3] * scale, p.rows, p.height, with_edges);
    }
    image = counts_ ? &owners_.by_lengths(c[counts_], n) : &owners_.by_sequences(c[rois_]);
  }

  const T scale;
  const std::vector<int32_t>* image = nullptr;
  Axis<T> down, across;

 private:
  In rois_, counts_;
  Owners owners_;
};

// Left, top, right, bottom: the derivative of the sum of Out * dout of region r with respect to the sides of the
// region. Sides of bins interpolate those of the region; where one moves, the line under it enters and the mean leaves.
template <class T>
void sides_grad(const Regions<T>& regions, const Pooled& p, int64_t r, const T* x, const T* out, const T* dout, T* to) {
  std::fill(to, to + 4, T(0));
  const T height = regions.down.sizes[static_cast<size_t>(r)], width = regions.across.sizes[static_cast<size_t>(r)];
  if (!(height > 0 && width > 0)) return;
  for (int64_t k = 0; k < p.channels * p.bins(); ++k) {
    const int64_t i = k % p.bins() / p.columns, j = k % p.columns;
    const T* plane = x + k / p.bins() * p.plane();
    const auto row = r * p.rows + i, column = r * p.columns + j;
    for (int64_t side = 0; side < 2; ++side) {  // first and second border of the bin
      const T sign = side ? T(1) : T(-1);
      const T y = gather(plane, p.width, regions.down.edges, row + r + side, regions.across.bins, column);
      const T x_line = gather(plane, p.width, regions.down.bins, row, regions.across.edges, column + r + side);
      const T by_y = sign * (y - out[k]) / height * dout[k] * regions.scale;
      const T by_x = sign * (x_line - out[k]) / width * dout[k] * regions.scale;
      const T part_y = static_cast<T>(i + side) / static_cast<T>(p.rows);
      const T part_x = static_cast<T>(j + side) / static_cast<T>(p.columns);
      to[0] += by_x * (1 - part_x);
      to[1] += by_y * (1 - part_y);
      to[2] += by_x * part_x;
      to[3] += by_y * part_y;
    }
  }
}

AB_OP(prroi_pool)
    .doc(
        "Out[r, c, i, j] = the mean over bin (i, j) of region r of the surface that interpolates X linearly and is 0 "
        "outside; 0 for a bin without an area.")
    .source("Jiang et al., Acquisition of localization confidence, ECCV 2018, arXiv:1807.11590")
    .in("X", "[N, C, H, W] float")
    .in("ROIs", "[rois, 4] like X: left, top, right, bottom, with a sequence for each image")
    .in_optional("BatchRoINums", "[N] int64: number of regions of each image, if ROIs has no LoD")
    .out("Out", "[rois, C, pooled_height, pooled_width]")
    .with(pool_attrs)
    .infer([](InferContext& c) {
      check_rois(c, "X", 4, "BatchRoINums");
      c.set_out("Out", pooled_shape(c, c.in("X").shape[1]), c.in("X").dtype);
    })
    .grad_reads({"X", "ROIs", "BatchRoINums"}, {"Out"})
    .grad_to({"X", "ROIs"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [regions = Regions<T>(op), x = op.in("X"), out = op.out("Out")](KernelContext& c) mutable {
        const Pooled p(c[x].shape(), c[out].shape());
        regions.find(c, p, false);
        pool_bins(c, p, *regions.image, regions.down.bins, regions.across.bins, c[x].data<T>(),
                  c[out].mutable_data<T>());
      };
    });

AB_GRAD(prroi_pool)
    .doc(
        "X@GRAD = Out@GRAD distributed by the weights of the pixels; ROIs@GRAD = the change of the means with the "
        "sides.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [regions = Regions<T>(op), x = op.in("X"), out = op.in("Out"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD"), drois = op.out("ROIs@GRAD")](KernelContext& c) mutable {
        const Pooled p(c[x].shape(), c[dout].shape());
        regions.find(c, p, c.needs(drois));
        const T *from = c[x].data<T>(), *made = c[out].data<T>(), *d = c[dout].data<T>();
        T *to = zeroed<T>(c, dx), *sides = needed<T>(c, drois);
        if (to) share_out_bins(c, p, *regions.image, regions.down.bins, regions.across.bins, d, to);
        if (!sides) return;
        const auto rois = static_cast<int64_t>(regions.image->size()), each = p.channels * p.bins();
        c.parallel_each(rois, 1, [&](int64_t r) {
          const T* image = from + (*regions.image)[static_cast<size_t>(r)] * p.channels * p.plane();
          sides_grad(regions, p, r, image, made + r * each, d + r * each, sides + 4 * r);
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::prroi_pool_op
