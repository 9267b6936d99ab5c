// Warps quadrangles of images to rectangles.
#include <array>
#include <cmath>

#include "ops/detection/bin_taps.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection::roi_perspective_transform_op {
namespace {

constexpr double kNear = 1e-4;  // pixels; points closer than that to a side lie on it
constexpr double kFlat = 1e-5;  // keeps a determinant from 0

void infer(InferContext& c) {
  check_rois(c, "X", 8);
  const int32_t rows = c.attr<int32_t>("transformed_height"), columns = c.attr<int32_t>("transformed_width");
  AB_CHECK(rows > 0 && columns > 0, InvalidArgument,
           "transformed_height and transformed_width must be above 0, got {} and {}", rows, columns);
  const float scale = c.attr<float>("spatial_scale");
  AB_CHECK(scale > 0, InvalidArgument, "spatial_scale must be above 0, got {}", scale);
  const int64_t rois = c.in("ROIs").shape[0];
  const DType dtype = c.in("X").dtype;
  c.set_out("Out", {rois, c.in("X").shape[1], rows, columns}, dtype);
  c.set_out("Mask", {rois, 1, rows, columns}, DType::kInt32);
  c.set_out("TransformMatrix", {rois, 9}, dtype);
  c.share_lod("Out", "ROIs");
  // Buffers that other devices use for their intermediate results.
  const Shape nothing{c.runtime() ? 0 : rois, c.in("X").shape[1], rows, columns};
  c.set_out("Out2InIdx", nothing, DType::kInt32);
  c.set_out("Out2InWeights", nothing, dtype);
}

// A quadrangle in pixels of X: corners clockwise from the upper left.
template <class T> struct Quad {
  std::array<T, 4> x, y;
  Quad(const T* roi, T scale) {
    for (size_t k = 0; k < 4; ++k) {
      x[k] = roi[2 * k] * scale;
      y[k] = roi[2 * k + 1] * scale;
    }
  }
  T side(size_t k) const { return std::hypot(x[k] - x[(k + 1) % 4], y[k] - y[(k + 1) % 4]); }
  static bool near(T a, T b) { return std::abs(a - b) < static_cast<T>(kNear); }

  // Whether side k is horizontal, and otherwise where it crosses the height `at`.
  bool level(size_t k) const { return near(y[k], y[(k + 1) % 4]); }
  T meets(size_t k, T at) const {
    const size_t next = (k + 1) % 4;
    return (at - y[k]) * (x[next] - x[k]) / (y[next] - y[k]) + x[k];
  }

  // a >= b up to rounding.
  static bool reaches(T a, T b) { return a > b || near(a, b); }
  static bool within(T at, T a, T b) { return reaches(at, std::min(a, b)) && reaches(std::max(a, b), at); }

  bool contains(T px, T py) const {
    bool inside = false;
    for (size_t k = 0; k < 4; ++k) {
      const size_t next = (k + 1) % 4;
      if (level(k)) {
        if (near(py, y[k]) && near(py, y[next]) && within(px, x[k], x[next])) return true;
        continue;
      }
      const T at = meets(k, py), low = std::min(y[k], y[next]), high = std::max(y[k], y[next]);
      if (near(at, px) && within(py, low, high)) return true;
      if (!reaches(low, py) && reaches(high, py) && at > px) inside = !inside;
    }
    return inside;
  }
};

// The matrix m, row by row, that maps pixel (column, row) of the rectangle to X: (u, v, w) = m (column, row, 1), at (u
// / w, v / w). The rectangle keeps the proportions of the quadrangle if it is wide enough.
template <class T> std::array<T, 9> transform(const Quad<T>& q, int64_t rows, int64_t columns) {
  const auto &x = q.x, &y = q.y;
  const T tall = (q.side(1) + q.side(3)) / 2, wide = (q.side(0) + q.side(2)) / 2;
  const T height = static_cast<T>(std::max<int64_t>(2, rows));
  const int64_t needed = clamped(std::round(wide * (height - 1) / tall), 0, columns) + 1;
  const T down = height - 1, across = static_cast<T>(std::max<int64_t>(2, std::min(needed, columns)) - 1);
  const T dx1 = x[1] - x[2], dx2 = x[3] - x[2], dx3 = x[0] - x[1] + x[2] - x[3];
  const T dy1 = y[1] - y[2], dy2 = y[3] - y[2], dy3 = y[0] - y[1] + y[2] - y[3];
  const T area = dx1 * dy2 - dx2 * dy1 + static_cast<T>(kFlat);
  std::array<T, 9> m{};
  m[6] = (dx3 * dy2 - dx2 * dy3) / area / across;
  m[7] = (dx1 * dy3 - dx3 * dy1) / area / down;
  m[8] = 1;
  m[0] = (x[1] - x[0] + m[6] * across * x[1]) / across;
  m[1] = (x[3] - x[0] + m[7] * down * x[3]) / down;
  m[2] = x[0];
  m[3] = (y[1] - y[0] + m[6] * across * y[1]) / across;
  m[4] = (y[3] - y[0] + m[7] * down * y[3]) / down;
  m[5] = y[0];
  return m;
}

// The four pixels that a pixel of the rectangle interpolates; `there` is false outside of the quadrangle or the image.
template <class T> struct Source {
  bool there = false;
  std::array<int64_t, 4> at{};
  std::array<T, 4> weight{};
};

template <class T> class Turned {
 public:
  Turned(const Quad<T>& quad, const Pooled& p) : quad_(quad), p_(p), matrix_(transform(quad, p.rows, p.columns)) {}
  const std::array<T, 9>& matrix() const { return matrix_; }

  Source<T> at(int64_t pixel) const {
    const int64_t i = pixel / p_.columns, j = pixel % p_.columns;
    const T column = static_cast<T>(j), row = static_cast<T>(i);
    const auto part = [&](size_t k) { return matrix_[k] * column + matrix_[k + 1] * row + matrix_[k + 2]; };
    const T w = part(6), x = part(0) / w, y = part(3) / w;
    Source<T> s;
    s.there = p_.plane() > 0 && quad_.contains(x, y) && x >= T(-0.5) && x <= static_cast<T>(p_.width) - T(0.5) &&
              y >= T(-0.5) && y <= static_cast<T>(p_.height) - T(0.5);
    if (!s.there) return s;
    const auto [left, right, u] = between(x, p_.width);
    const auto [top, bottom, v] = between(y, p_.height);
    s.at = {top * p_.width + left, top * p_.width + right, bottom * p_.width + left, bottom * p_.width + right};
    s.weight = {(1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v};
    return s;
  }

 private:
  struct Pair {
    int64_t low, high;
    T part;
  };
  static Pair between(T at, int64_t extent) {
    at = std::max(at, T(0));
    const auto low = static_cast<int64_t>(at);
    if (low >= extent - 1) return {extent - 1, extent - 1, T(0)};
    return {low, low + 1, at - static_cast<T>(low)};
  }

  Quad<T> quad_;
  Pooled p_;
  std::array<T, 9> matrix_;
};

template <class T> Kernel transform(const KernelArgs& op) {
  return
      [owners = Owners(), scale = static_cast<T>(op.attr<float>("spatial_scale")), x = op.in("X"), rois = op.in("ROIs"),
       out = op.out("Out"), mask = op.out("Mask"), matrix = op.out("TransformMatrix")](KernelContext& c) mutable {
        const Pooled p(c[x].shape(), c[out].shape());
        const auto& image = owners.by_sequences(c[rois]);
        const T *from = c[x].data<T>(), *quads = c[rois].data<T>();
        T *to = c[out].mutable_data<T>(), *matrices = needed<T>(c, matrix);
        int32_t* masks = needed<int32_t>(c, mask);
        const auto n = static_cast<int64_t>(image.size());
        c.parallel_for(n, kBinGrain / (p.channels * p.bins() + 1) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const Turned<T> turned(Quad<T>(quads + 8 * r, scale), p);
            if (matrices) std::copy(turned.matrix().begin(), turned.matrix().end(), matrices + 9 * r);
            for (int64_t k = 0; k < p.bins(); ++k) {
              const Source<T> s = turned.at(k);
              if (masks) masks[r * p.bins() + k] = s.there ? 1 : 0;
              for (int64_t channel = 0; channel < p.channels; ++channel) {
                const T* plane = from + (image[static_cast<size_t>(r)] * p.channels + channel) * p.plane();
                T sum = 0;
                for (size_t q = 0; s.there && q < 4; ++q) sum += plane[s.at[q]] * s.weight[q];
                to[(r * p.channels + channel) * p.bins() + k] = sum;
              }
            }
          }
        });
      };
}

constexpr auto transform_back = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [owners = Owners(), scale = static_cast<T>(op.attr<float>("spatial_scale")), rois = op.in("ROIs"),
          dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
    if (!c.needs(dx)) return;
    const Pooled p(c[dx].shape(), c[dout].shape());
    const auto& image = owners.by_sequences(c[rois]);
    const T *d = c[dout].data<T>(), *quads = c[rois].data<T>();
    T* to = zeroed<T>(c, dx);
    const auto n = static_cast<int64_t>(image.size());
    c.parallel_for(p.channels, kBinGrain / (n * p.bins() + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = 0; k < n * p.bins(); ++k) {
        const int64_t r = k / p.bins();
        const Source<T> s = Turned<T>(Quad<T>(quads + 8 * r, scale), p).at(k % p.bins());
        for (int64_t channel = begin; s.there && channel < end; ++channel) {
          T* plane = to + (image[static_cast<size_t>(r)] * p.channels + channel) * p.plane();
          const T by = d[(r * p.channels + channel) * p.bins() + k % p.bins()];
          for (size_t q = 0; q < 4; ++q) plane[s.at[q]] += by * s.weight[q];
        }
      }
    });
  };
};

// Intermediate outputs that 1.8.5 keeps exist by name and are empty.
void infer_gradient_of_image(InferContext& c) {
  check_rois(c, "X", 8);
  const Shape& x = c.in("X").shape;
  const Shape out{c.in("ROIs").shape[0], x[1], c.attr<int32_t>("transformed_height"),
                  c.attr<int32_t>("transformed_width")};
  const Meta& dout = c.in("Out@GRAD");
  AB_CHECK(compatible(dout.shape, out) && dout.dtype == c.in("X").dtype, ShapeMismatch,
           "Out@GRAD must be {} {}, as Out, got {} {}", dtype_name(c.in("X").dtype), out.str(), dtype_name(dout.dtype),
           dout.shape.str());
  c.same_as("X@GRAD", "X");
}

AB_OP(roi_perspective_transform)
    .doc(
        "Out[r] = region r of X, a quadrangle, as a rectangle of transformed_height x transformed_width pixels; each "
        "pixel interpolates the four pixels around its position in X; 0 outside of the quadrangle and of the image.")
    .source("Sun et al., TextNet, ACCV 2018, arXiv:1812.09900")
    .in("X", "[N, C, H, W] float")
    .in("ROIs", "[rois, 8] like X: x and y of four corners, clockwise from the upper left, a sequence for each image")
    .out("Out", "[rois, C, transformed_height, transformed_width]")
    .out("Mask", "[rois, 1, transformed_height, transformed_width] int32: 1 inside the region")
    .out("TransformMatrix", "[rois, 9]: from (column, row, 1) of Out to (x w, y w, w) of X")
    .out_intermediate("Out2InIdx", "int32: always empty")
    .out_intermediate("Out2InWeights", "always empty")
    .attr<float>("spatial_scale", 1.0f, "pixels of X for a pixel of the image, above 0")
    .attr<int32_t>("transformed_height", 1, "rows, above 0")
    .attr<int32_t>("transformed_width", 1, "columns, above 0")
    .infer(infer)
    .grad_reads({"X", "ROIs"}, {"Out2InIdx", "Out2InWeights"})
    .grad_from({"Out"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return transform<T>(op); });

AB_GRAD(roi_perspective_transform)
    .doc("X@GRAD = Out@GRAD distributed over the pixels that each pixel of Out interpolates.")
    .infer(infer_gradient_of_image)
    .cpu<float, double>(transform_back);

}  // namespace
}  // namespace anabranch::detection::roi_perspective_transform_op
