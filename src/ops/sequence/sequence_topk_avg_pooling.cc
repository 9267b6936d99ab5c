// Means of the k largest numbers of each row of images of different sizes.
#include <algorithm>
#include <numeric>

#include "ops/kernels/outputs.h"
#include "ops/sequence/images.h"

namespace anabranch::sequence::sequence_topk_avg_pooling_op {
namespace {

using Ints = std::vector<int32_t>;

int32_t largest(const Ints& topks) { return *std::max_element(topks.begin(), topks.end()); }

void check_topks(const Ints& topks) {
  AB_CHECK(!topks.empty(), InvalidArgument, "topks must name at least one number");
  for (const int32_t k : topks) AB_CHECK(k >= 1, InvalidArgument, "topks must be at least 1, got {}", k);
}

void infer(InferContext& c) {
  check_images(c);
  const int64_t channels = c.attr<int32_t>("channel_num");
  const auto& topks = c.attr<Ints>("topks");
  if (c.runtime()) image_sizes(c, channels);
  AB_CHECK(c.in("ROW").shape.rank() > 0, InvalidArgument, "ROW must have at least one axis, got a scalar");
  const int64_t rows = c.in("ROW").shape[0];
  c.set_out("Out", Shape{rows, channels * static_cast<int64_t>(topks.size())}, c.in("X").dtype);
  c.share_lod("Out", "ROW");
  if (!c.runtime()) c.out("Out").lod_level = c.in("X").lod_level;  // what Fluid declares
  c.set_out("pos", Shape{rows < 0 ? kUnknown : rows * channels * largest(topks)}, DType::kInt32);
}

// Calls fn(first number of a row of an image, its length, row and channel of Out) for all rows of all images.
template <class Fn> void each_row(const Offsets& x, const ImageSizes& sizes, int64_t channels, const Fn& fn) {
  int64_t row = 0;
  for (int64_t s = 0; s < sizes.count(); ++s) {
    const auto [height, width] = sizes[s];
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t r = 0; r < height; ++r) {
        fn(x[static_cast<size_t>(s)] + (channel * height + r) * width, width, row + r, channel);
      }
    }
    row += height;
  }
}

// The indices of the largest numbers of a row, largest first, -1 if there are none left.
template <class T> void find_largest(const T* row, int64_t n, int64_t k, std::vector<int32_t>* places, int32_t* found) {
  places->resize(static_cast<size_t>(n));
  std::iota(places->begin(), places->end(), 0);
  const auto end = places->begin() + std::min(k, n);
  std::partial_sort(places->begin(), end, places->end(),
                    [=](int32_t a, int32_t b) { return row[a] > row[b] || (row[a] == row[b] && a < b); });
  std::fill(std::copy(places->begin(), end, found), found + k, -1);
}

struct Slots {
  In x, rows, columns;
  Ints topks;
  int64_t channels;
  explicit Slots(const KernelArgs& op)
      : x(op.in("X")),
        rows(op.in("ROW")),
        columns(op.in("COLUMN")),
        topks(op.attr<Ints>("topks")),
        channels(op.attr<int32_t>("channel_num")) {}
  ImageSizes sizes(const KernelContext& c) const { return {offsets(c[rows]), offsets(c[columns])}; }
  int64_t count() const { return static_cast<int64_t>(topks.size()); }
};

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [slots = Slots(op), out = op.out("Out"), pos = op.out("pos"),
          places = std::make_shared<std::vector<int32_t>>()](KernelContext& c) {
    const int64_t most = largest(slots.topks), channels = slots.channels, count = slots.count();
    const T* x = c[slots.x].data<T>();
    T* to = c[out].mutable_data<T>();
    auto* found = c[pos].mutable_data<int32_t>();
    each_row(offsets(c[slots.x]), slots.sizes(c), channels, [&](int64_t at, int64_t n, int64_t row, int64_t channel) {
      int32_t* own = found + (row * channels + channel) * most;
      find_largest(x + at, n, most, places.get(), own);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t top = slots.topks[static_cast<size_t>(k)];
        T sum = 0;
        for (int64_t i = 0; i < top && own[i] >= 0; ++i) sum += x[at + own[i]];
        to[(row * channels + channel) * count + k] = sum / static_cast<T>(top);
      }
    });
  };
};

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [slots = Slots(op), pos = op.in("pos"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
    if (!c.needs(dx)) return;
    const int64_t most = largest(slots.topks), channels = slots.channels, count = slots.count();
    const auto* found = c[pos].data<int32_t>();
    const T* g = c[dout].data<T>();
    T* to = zeroed<T>(c, dx);
    each_row(offsets(c[slots.x]), slots.sizes(c), channels, [&](int64_t at, int64_t n, int64_t row, int64_t channel) {
      const int32_t* own = found + (row * channels + channel) * most;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t top = slots.topks[static_cast<size_t>(k)];
        const T slope = g[(row * channels + channel) * count + k] / static_cast<T>(top);
        for (int64_t i = 0; i < top && own[i] >= 0; ++i) {
          AB_CHECK(own[i] < n, InvalidArgument, "pos must be below the row length {}, got {}", n, own[i]);
          to[at + own[i]] += slope;
        }
      }
    });
  };
};

AB_OP(sequence_topk_avg_pooling)
    .doc(
        "Out = for each row of each image, each channel and each k of topks: the sum of its k largest numbers, divided "
        "by k.")
    .in("X", "[numbers, 1] float, one sequence per image: channels by rows by columns")
    .in("ROW", "[rows, ...], sequence lengths are the heights of images")
    .in("COLUMN", "[columns, ...], sequence lengths are the widths of images")
    .out("Out", "[rows, channels * topks] with the LoD of ROW")
    .out_intermediate("pos", "[rows * channels * largest of topks] int32, indices of the largest numbers; -1: none")
    .attr<Ints>("topks", {1}, "list of k, each at least 1", check_topks)
    .attr<int32_t>("channel_num", 1, "number of channels of an image",
                   [](int32_t v) { AB_CHECK(v >= 1, InvalidArgument, "channel_num must be at least 1, got {}", v); })
    .dtype_of_input("X")
    .infer(infer)
    .grad_reads({"X", "ROW", "COLUMN"}, {"pos"})
    .grad_from({"Out"})
    .grad_to({"X"})
    .cpu<float, double>(forward);

AB_GRAD(sequence_topk_avg_pooling)
    .doc("X@GRAD distributes Out@GRAD over the k largest numbers.")
    .dtype_of_input("X")
    .grad_lod("X@GRAD", "X")
    .cpu<float, double>(backward);

}  // namespace
}  // namespace anabranch::sequence::sequence_topk_avg_pooling_op
