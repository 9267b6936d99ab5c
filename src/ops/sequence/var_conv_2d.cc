// Convolution of images of different sizes, with windows centred at multiples of the stride.
#include <algorithm>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/outputs.h"
#include "ops/sequence/images.h"

namespace anabranch::sequence::var_conv_2d_op {
namespace {

struct Filter {
  int64_t channels, outputs, down, right, height, width;
  template <class Source> explicit Filter(const Source& c) {
    const auto get = [&](const char* name) { return static_cast<int64_t>(c.template attr<int32_t>(name)); };
    channels = get("InputChannel"), outputs = get("OutputChannel"), down = get("StrideH"), right = get("StrideW");
    height = get("KernelH"), width = get("KernelW");
  }
  int64_t taps() const { return channels * height * width; }
  ImageSize windows(const ImageSize& size) const {
    const bool none = size.height == 0 || size.width == 0;
    return {none ? 0 : (size.height - 1) / down + 1, none ? 0 : (size.width - 1) / right + 1};
  }
};

void infer(InferContext& c) {
  check_images(c);
  check_same_dtype(c, "X", "W");
  const Filter filter(c);
  check_shape(c, "W", Shape{filter.outputs, filter.taps()});
  for (const char* slot : {"Out", "Col"}) {
    c.set_out(slot, Shape{kUnknown, 1}, c.in("X").dtype);
    c.out(slot).lod_level = 0;  // as Fluid 1.8.5 declares it
  }
  if (!c.runtime()) return;
  const ImageSizes sizes = image_sizes(c, filter.channels);
  Offsets out{0}, columns{0};
  for (int64_t s = 0; s < sizes.count(); ++s) {
    const ImageSize windows = filter.windows(sizes[s]);
    out.push_back(out.back() + filter.outputs * windows.height * windows.width);
    columns.push_back(columns.back() + filter.taps() * windows.height * windows.width);
  }
  c.set_out("Out", Shape{out.back(), 1}, c.in("X").dtype);
  c.set_out("Col", Shape{columns.back(), 1}, c.in("X").dtype);
  set_lod(c, "Out", one_level(std::move(out)));
  set_lod(c, "Col", one_level(std::move(columns)));
}

// Calls fn(index in the image, index among the columns) for all elements of all windows that are inside the image.
template <class Fn> void each_tap(const Filter& f, const ImageSize& size, const Fn& fn) {
  const ImageSize windows = f.windows(size);
  const int64_t count = windows.height * windows.width;
  for (int64_t tap = 0; tap < f.taps(); ++tap) {
    const int64_t channel = tap / (f.height * f.width), i = tap / f.width % f.height, j = tap % f.width;
    for (int64_t w = 0; w < count; ++w) {
      const int64_t y = w / windows.width * f.down + i - f.height / 2,
                    x = w % windows.width * f.right + j - f.width / 2;
      if (y < 0 || y >= size.height || x < 0 || x >= size.width) continue;
      fn((channel * size.height + y) * size.width + x, tap * count + w);
    }
  }
}

// The offsets of the images and their windows.
struct Places {
  Offsets x, out, columns;
  std::vector<ImageSize> sizes;
  std::vector<int64_t> windows;

  void find(const Filter& f, const ImageSizes& all) {
    x.assign(1, 0), out.assign(1, 0), columns.assign(1, 0);
    sizes.clear(), windows.clear();
    for (int64_t s = 0; s < all.count(); ++s) {
      const ImageSize found = f.windows(all[s]);
      sizes.push_back(all[s]);
      windows.push_back(found.height * found.width);
      x.push_back(x.back() + f.channels * all[s].height * all[s].width);
      out.push_back(out.back() + f.outputs * windows.back());
      columns.push_back(columns.back() + f.taps() * windows.back());
    }
  }
  int64_t count() const { return static_cast<int64_t>(sizes.size()); }
};

// to[i, j] += sum over k of a[i, k] b[k, j], for one row i.
template <class T> void add_products(const T* a, const T* b, int64_t k, int64_t n, T* to) {
  for (int64_t t = 0; t < k; ++t) {
    for (int64_t j = 0; j < n; ++j) to[j] += a[t] * b[t * n + j];
  }
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("X"), rows = op.in("ROW"), columns = op.in("COLUMN"), w = op.in("W");
  return [=, filter = Filter(op), out = op.out("Out"), col = op.out("Col"),
          places = std::make_shared<Places>()](KernelContext& c) {
    places->find(filter, {offsets(c[rows]), offsets(c[columns])});
    const T *from = c[x].data<T>(), *weights = c[w].data<T>();
    T *taps = zeroed<T>(c, col), *to = zeroed<T>(c, out);
    c.parallel_each(places->count(), 1, [&](int64_t k) {
      const auto s = static_cast<size_t>(k);
      const T* image = from + places->x[s];
      T* own = taps + places->columns[s];
      const int64_t windows = places->windows[s];
      each_tap(filter, places->sizes[s], [=](int64_t at, int64_t tap) { own[tap] = image[at]; });
      for (int64_t o = 0; o < filter.outputs; ++o) {
        add_products(weights + o * filter.taps(), own, filter.taps(), windows, to + places->out[s] + o * windows);
      }
    });
  };
};

// dw[o, tap] = sum over all windows of all images of g[o, window] column[tap, window].
template <class T>
void filter_gradient(const KernelContext& c, const Filter& f, const Places& places, const T* g, const T* columns,
                     T* dw) {
  c.parallel_each(f.outputs * f.taps(), 16, [&](int64_t k) {
    T sum = 0;
    for (size_t s = 0; s < places.sizes.size(); ++s) {
      const int64_t n = places.windows[s];
      const T *slope = g + places.out[s] + k / f.taps() * n, *own = columns + places.columns[s] + k % f.taps() * n;
      for (int64_t i = 0; i < n; ++i) sum += slope[i] * own[i];
    }
    dw[k] = sum;
  });
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In rows = op.in("ROW"), columns = op.in("COLUMN"), w = op.in("W"), col = op.in("Col"), dout = op.in("Out@GRAD");
  const Out dx = op.out("X@GRAD"), dw = op.out("W@GRAD");
  return [=, filter = Filter(op), places = std::make_shared<Places>(),
          scratch = std::make_shared<Tensor>()](KernelContext& c) {
    places->find(filter, {offsets(c[rows]), offsets(c[columns])});
    const T *g = c[dout].data<T>(), *weights = c[w].data<T>();
    if (c.needs(dw)) {
      filter_gradient(c, filter, *places, g, c[col].data<T>(), c[dw].mutable_data<T>());
    }
    T* to = zeroed<T>(c, dx);
    if (!to) return;
    scratch->resize(Shape{places->columns.back()}, dtype_of<T>);
    T* slopes = scratch->template mutable_data<T>();
    std::fill(slopes, slopes + places->columns.back(), T{0});
    c.parallel_each(places->count(), 1, [&](int64_t k) {
      const auto s = static_cast<size_t>(k);
      const int64_t windows = places->windows[s], taps = filter.taps();
      T *own = slopes + places->columns[s], *image = to + places->x[s];
      for (int64_t o = 0; o < filter.outputs; ++o) {
        const T* slope = g + places->out[s] + o * windows;
        for (int64_t t = 0; t < taps; ++t) {
          for (int64_t j = 0; j < windows; ++j) own[t * windows + j] += weights[o * taps + t] * slope[j];
        }
      }
      each_tap(filter, places->sizes[s], [=](int64_t at, int64_t tap) { image[at] += own[tap]; });
    });
  };
};

void attrs(OpDef& def) {
  for (const char* name : {"InputChannel", "OutputChannel", "StrideH", "StrideW", "KernelH", "KernelW"}) {
    def.attr<int32_t>(name, 1, "at least 1", within(name, 1, 1 << 20));
  }
}

AB_OP(var_conv_2d)
    .doc("Out = the convolution of each image; window (y, x) is centred at (y StrideH, x StrideW), with zero padding.")
    .in("X", "[numbers, 1] float, one sequence per image: channels by rows by columns")
    .in("ROW", "[rows, ...], sequence lengths are the heights of images")
    .in("COLUMN", "[columns, ...], sequence lengths are the widths of images")
    .in("W", "[OutputChannel, InputChannel * KernelH * KernelW]")
    .out("Out", "[numbers, 1], one sequence per image: OutputChannel by rows by columns")
    .out("Col", "[numbers, 1], the windows of each image as columns")
    .with(attrs)
    .dtype_of_input("X")
    .infer(infer)
    .grad_reads({"X", "ROW", "COLUMN", "W"}, {"Col"})
    .grad_from({"Out"})
    .grad_to({"X", "W"})
    .cpu<float, double>(forward);

AB_GRAD(var_conv_2d)
    .doc("Gradients of var_conv_2d with respect to X and W.")
    .dtype_of_input("X")
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>(backward);

}  // namespace
}  // namespace anabranch::sequence::var_conv_2d_op
