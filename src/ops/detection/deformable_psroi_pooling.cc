// Regions pooled by samples in bins that are moved, every bin from channels of its own.
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "ops/detection/bin_taps.h"
#include "ops/kernels/outputs.h"

namespace anabranch::detection {
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
  check_tensor(c, "Trans");
  check_rank(c, "Trans", 4, 4);
  const Ints &group = sizes(c, "group_size"), &part = sizes(c, "part_size");
  const int64_t made = positive(c, "output_dim"), samples = positive(c, "sample_per_part");
  AB_CHECK(samples <= kMostSamples, InvalidArgument, "sample_per_part must be at most {}, got {}", kMostSamples, samples);
  const Shape &x = c.in("Input").shape, &trans = c.in("Trans").shape;
  AB_CHECK(x[1] == kUnknown || (x[1] / group[0] / group[1] == made && x[1] % (int64_t{group[0]} * group[1]) == 0),
           ShapeMismatch, "Input must have output_dim * group_size channels ({} * {} * {}), got {}", made, group[0],
           group[1], x.str());
  if (!c.attr<bool>("no_trans")) {
    check_shape(c, "Trans", {c.in("ROIs").shape[0], kUnknown, part[0], part[1]});
    AB_CHECK(trans[1] == kUnknown || (trans[1] > 1 && trans[1] % 2 == 0 && made % (trans[1] / 2) == 0), ShapeMismatch,
             "Trans must have 2 channels for each class, and output_dim ({}) be divisible by the classes, got {}", made,
             trans.str());
  }
  if (c.runtime()) check_same_dtype(c, "Trans", "Input");
  const Shape out = pooled_shape(c, made);
  c.set_out("Output", out, c.in("Input").dtype);
  c.set_out("TopCount", out, c.in("Input").dtype);
}

// Four pixels with their weights, and how their sum changes to the right and downwards.
template <class T> struct Sample {
  std::array<int64_t, 4> at;
  std::array<T, 4> weight, right, down;
  Sample(T x, T y, int64_t width) {
    const T left = std::floor(x), top = std::floor(y), far = std::ceil(x), low = std::ceil(y), u = x - left, v = y - top;
    const auto row = static_cast<int64_t>(top) * width, next = static_cast<int64_t>(low) * width;
    at = {row + static_cast<int64_t>(left), row + static_cast<int64_t>(far), next + static_cast<int64_t>(left),
          next + static_cast<int64_t>(far)};
    weight = {(1 - u) * (1 - v), u * (1 - v), (1 - u) * v, u * v};
    right = {v - 1, 1 - v, -v, v};
    down = {u - 1, -u, 1 - u, u};
  }
  T of(const T* plane, const std::array<T, 4>& by) const {
    return plane[at[0]] * by[0] + plane[at[1]] * by[1] + plane[at[2]] * by[2] + plane[at[3]] * by[3];
  }
};

// Geometry of the op, read from its attributes.
template <class T> struct Rule {
  T scale, deviation;
  bool moved;
  int64_t samples;
  std::array<int64_t, 2> group, part;
  explicit Rule(const KernelArgs& op)
      : scale(static_cast<T>(op.attr<float>("spatial_scale"))),
        deviation(static_cast<T>(op.attr<float>("trans_std"))),
        moved(!op.attr<bool>("no_trans")),
        samples(op.attr<int32_t>("sample_per_part")) {
    for (size_t k : {size_t{0}, size_t{1}}) {
      group[k] = op.attr<Ints>("group_size")[k];
      part[k] = op.attr<Ints>("part_size")[k];
    }
  }
};

// A bin of an output channel: its pixels and how it is moved.
template <class T> struct Bin {
  T left, top, step_x, step_y, region_width, region_height;
  int64_t channel;  // of Input
  int64_t trans;    // place of the movement to the right; that downwards is part_size behind it
};

template <class T> class Bins {
 public:
  Bins(const Rule<T>& rule, const Shape& x, const Shape& out, const Shape& trans)
      : rule_(rule), p_(x, out), made_(out[1]), classes_(rule.moved ? trans[1] / 2 : 1) {}
  const Pooled& pooled() const { return p_; }
  int64_t classes() const { return classes_; }
  int64_t per_class() const { return made_ / classes_; }

  // Bin b of channel `made` of region r.
  Bin<T> at(const T* box, const T* trans, int64_t r, int64_t made, int64_t b) const {
    const int64_t i = b / p_.columns, j = b % p_.columns;
    const T left = std::round(box[0]) * rule_.scale - T(0.5), top = std::round(box[1]) * rule_.scale - T(0.5);
    const T width = std::max((std::round(box[2]) + 1) * rule_.scale - T(0.5) - left, T(0.1));
    const T height = std::max((std::round(box[3]) + 1) * rule_.scale - T(0.5) - top, T(0.1));
    Bin<T> bin{};
    bin.region_width = width;
    bin.region_height = height;
    bin.left = static_cast<T>(j) * width / static_cast<T>(p_.columns) + left;
    bin.top = static_cast<T>(i) * height / static_cast<T>(p_.rows) + top;
    bin.step_x = width / static_cast<T>(p_.columns) / static_cast<T>(rule_.samples);
    bin.step_y = height / static_cast<T>(p_.rows) / static_cast<T>(rule_.samples);
    const int64_t row = i * rule_.group[0] / p_.rows, column = j * rule_.group[1] / p_.columns;
    bin.channel = (made * rule_.group[0] + row) * rule_.group[1] + column;
    if (!rule_.moved) return bin;
    const int64_t part = i * rule_.part[0] / p_.rows * rule_.part[1] + j * rule_.part[1] / p_.columns;
    bin.trans = (r * classes_ + made / per_class()) * 2 * part_plane() + part;
    bin.left += trans[bin.trans] * rule_.deviation * width;
    bin.top += trans[bin.trans + part_plane()] * rule_.deviation * height;
    return bin;
  }
  int64_t part_plane() const { return rule_.part[0] * rule_.part[1]; }

  // fn(sample) for the samples of a bin that lie in the image or less than half a pixel outside; how many there are.
  template <class Fn> int64_t each(const Bin<T>& bin, Fn&& fn) const {
    const T most_x = static_cast<T>(p_.width - 1), most_y = static_cast<T>(p_.height - 1);
    int64_t count = 0;
    for (int64_t k = 0; p_.plane() > 0 && k < rule_.samples * rule_.samples; ++k) {
      const T x = bin.left + static_cast<T>(k % rule_.samples) * bin.step_x;
      const T y = bin.top + static_cast<T>(k / rule_.samples) * bin.step_y;
      if (!(x >= T(-0.5) && x <= most_x + T(0.5) && y >= T(-0.5) && y <= most_y + T(0.5))) continue;
      fn(Sample<T>(std::clamp(x, T(0), most_x), std::clamp(y, T(0), most_y), p_.width));
      ++count;
    }
    return count;
  }

 private:
  Rule<T> rule_;
  Pooled p_;
  int64_t made_, classes_;
};

template <class T> Kernel pool(const KernelArgs& op) {
  return [rule = Rule<T>(op), owners = Owners(), x = op.in("Input"), rois = op.in("ROIs"), trans = op.in("Trans"),
          out = op.out("Output"), count = op.out("TopCount")](KernelContext& c) mutable {
    const Bins<T> bins(rule, c[x].shape(), c[out].shape(), c[trans].shape());
    const auto& image = owners.by_sequences(c[rois]);
    const T *from = c[x].template data<T>(), *boxes = c[rois].template data<T>(), *moves = c[trans].template data<T>();
    T *to = c[out].template mutable_data<T>(), *counts = wanted<T>(c, count);
    const Pooled& p = bins.pooled();
    const int64_t made = c[out].shape()[1];
    c.parallel_for(c[out].numel(), kBinGrain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t r = k / (made * p.bins());
        const Bin<T> bin = bins.at(boxes + 4 * r, moves, r, k / p.bins() % made, k % p.bins());
        const T* plane = from + (image[static_cast<size_t>(r)] * p.channels + bin.channel) * p.plane();
        T sum = 0;
        const int64_t n = bins.each(bin, [&](const Sample<T>& s) { sum += s.of(plane, s.weight); });
        to[k] = n ? sum / static_cast<T>(n) : T(0);
        if (counts) counts[k] = static_cast<T>(n);
      }
    });
  };
}

template <class T> struct Gradient {
  Rule<T> rule;
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

  // fn(k, bin, weight) for the bins of channels [begin, end) of region r that have samples.
  template <class Fn> void each(const KernelContext& c, const Bins<T>& bins, int64_t r, int64_t begin, int64_t end, Fn&& fn) const {
    const int64_t made = c[dout].shape()[1], each_bin = bins.pooled().bins();
    for (int64_t k = begin * each_bin; k < end * each_bin; ++k) {
      const int64_t at = r * made * each_bin + k;
      const T n = c[count].template data<T>()[at];
      if (!(n > 0)) continue;
      fn(bins.at(c[rois].template data<T>() + 4 * r, c[trans].template data<T>(), r, k / each_bin, k % each_bin),
         c[dout].template data<T>()[at] / n);
    }
  }

  void run(KernelContext& c) {
    const Bins<T> bins(rule, c[x].shape(), c[dout].shape(), c[trans].shape());
    const auto& image = owners.by_sequences(c[rois]);
    const auto n = static_cast<int64_t>(image.size()), made = c[dout].shape()[1];
    const Pooled& p = bins.pooled();
    const auto plane_of = [&](int64_t r, int64_t channel) {
      return (image[static_cast<size_t>(r)] * p.channels + channel) * p.plane();
    };
    if (T* to = zeroed<T>(c, dx)) {  // an output channel has input channels of its own
      c.parallel_for(made, kBinGrain / (n * p.bins() + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = 0; r < n; ++r) {
          each(c, bins, r, begin, end, [&](const Bin<T>& bin, T d) {
            T* plane = to + plane_of(r, bin.channel);
            bins.each(bin, [&](const Sample<T>& s) {
              for (size_t q = 0; q < 4; ++q) plane[s.at[q]] += d * s.weight[q];
            });
          });
        }
      });
    }
    T* moves = zeroed<T>(c, dtrans);
    if (!moves || !rule.moved) return;
    const T* from = c[x].template data<T>();
    c.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        each(c, bins, r, 0, made, [&](const Bin<T>& bin, T d) {
          const T* plane = from + plane_of(r, bin.channel);
          bins.each(bin, [&](const Sample<T>& s) {
            moves[bin.trans] += d * s.of(plane, s.right) * rule.deviation * bin.region_width;
            moves[bin.trans + bins.part_plane()] += d * s.of(plane, s.down) * rule.deviation * bin.region_height;
          });
        });
      }
    });
  }
};

AB_OP(deformable_psroi_pooling)
    .doc(
        "Output[r, c, i, j] = the mean of sample_per_part x sample_per_part samples of Input in bin (i, j) of region r, "
        "moved by trans_std * Trans in parts of the region; channel (c gh + floor(i gh / pooled_height)) gw + "
        "floor(j gw / pooled_width) of Input with group_size [gh, gw].")
    .source("Dai et al., Deformable convolutional networks, ICCV 2017, arXiv:1703.06211")
    .in("Input", "[N, output_dim * gh * gw, H, W] float")
    .in("ROIs", "[rois, 4] as Input: left, top, right, bottom, with a sequence for each image")
    .in("Trans", "[rois, 2 * classes, part_size] as Input: movement to the right and downwards of the channels of a class")
    .out("TopCount", "as Output: samples that lie in the image")
    .out("Output", "[rois, output_dim, pooled_height, pooled_width]")
    .required_attr("no_trans", AttrType::kBoolean, "true: Trans is not looked at")
    .required_attr("spatial_scale", AttrType::kFloat, "pixels of Input for a pixel of the image, above 0")
    .required_attr("output_dim", AttrType::kInt, "channels of Output, above 0")
    .required_attr("group_size", AttrType::kInts, "[gh, gw]")
    .required_attr("pooled_height", AttrType::kInt, "rows of bins, above 0")
    .required_attr("pooled_width", AttrType::kInt, "columns of bins, above 0")
    .required_attr("part_size", AttrType::kInts, "rows and columns of Trans")
    .required_attr("sample_per_part", AttrType::kInt, "samples of a bin along each axis")
    .required_attr("trans_std", AttrType::kFloat, "factor of Trans")
    .infer(infer)
    .grad_reads({"Input", "ROIs", "Trans"}, {"TopCount"})
    .grad_from({"Output"})
    .grad_to({"Input", "Trans"})
    .dtype_of_input("Input")
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return pool<typename decltype(tag)::type>(op); });

AB_GRAD(deformable_psroi_pooling)
    .doc("Input@GRAD = Output@GRAD in equal shares for the samples; Trans@GRAD by how they change as they are moved.")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [grad = Gradient<T>(op)](KernelContext& c) mutable { grad.run(c); };
    });

}  // namespace
}  // namespace anabranch::detection
