// Shuffles rows, and crops images at random. Fluid keeps the seed of the next step in a variable; here random numbers
// follow from the op and the step (opdef/kernel_context.h), and the variable does not change.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/philox.h"

namespace anabranch::tensor::random_rows_op {
namespace {

void seed_state(OpDef& def) {
  def.in("Seed", "[1] int64 or empty: ignored")
      .takes("Seed", Holds::kAnything)
      .out_named_only("SeedOut", "Seed, unchanged")
      .attr<int32_t>("startup_seed", 0, "ops with different seeds draw different numbers")
      .effects(kRandom | kMaybeUnset)
      .dtype_of_input("X");
}

// The random numbers of a step.
struct Draw {
  RandomKey key;
  explicit Draw(const KernelArgs& op) : key(op.random()) {
    key.seed ^= static_cast<uint64_t>(op.attr<int32_t>("startup_seed")) << 32;
  }
  Philox start(const KernelContext& c) const { return Philox(with_step(key, c)); }
};

// Number i of a draw, in [0, count).
int64_t below(const Philox& random, int64_t i, int64_t count) {
  const double u = random.uniform53(static_cast<uint64_t>(i));
  return std::min(count - 1, static_cast<int64_t>(u * static_cast<double>(count)));
}

// The unit of shuffling: the last axis.
int64_t width_of(const Shape& s) { return s[s.rank() - 1]; }

void infer_shuffle(InferContext& c) {
  check_rank(c, "X", 1, kMaxRank);
  const Shape& x = c.in("X").shape;
  c.same_as("Out", "X");
  c.set_out("ShuffleIdx", Shape{x.slice(0, x.rank() - 1).known() ? x.numel(0, x.rank() - 1) : kUnknown}, DType::kInt64);
}

AB_OP(shuffle_batch)
    .doc("Out = the rows of X (indexed by all axes except the last) in random order: Out[i] = X[ShuffleIdx[i]].")
    .in("X", "[..., D] numbers")
    .with(seed_state)
    .out("Out", "like X")
    .out("ShuffleIdx", "[rows] int64")
    .infer(infer_shuffle)
    .grad([](GradContext& g) {
      g.op("shuffle_batch_grad")
          .in("ShuffleIdx", g.out("ShuffleIdx"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"));
    })
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [draw = Draw(op), x = op.in("X"), out = op.out("Out"), places = op.out("ShuffleIdx")](KernelContext& c) {
        const int64_t rows = c[places].numel(), width = width_of(c[x].shape());
        int64_t* place = c[places].mutable_data<int64_t>();
        const Philox random = draw.start(c);
        for (int64_t i = 0; i < rows; ++i) place[i] = i;
        for (int64_t i = rows; i-- > 1;) std::swap(place[i], place[below(random, i, i + 1)]);
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        for (int64_t i = 0; i < rows; ++i) std::copy_n(from + place[i] * width, width, to + i * width);
      };
    });

AB_GRAD(shuffle_batch)
    .doc("X@GRAD[ShuffleIdx[i]] = Out@GRAD[i].")
    .in("ShuffleIdx", "as in shuffle_batch: each row once")
    .in("Out@GRAD", "like Out")
    .out("X@GRAD", "like X")
    .dtype_of_input("Out@GRAD")
    .infer([](InferContext& c) {
      check_rank(c, "Out@GRAD", 1, kMaxRank);
      const Shape& s = c.in("Out@GRAD").shape;
      check_dtype(c, "ShuffleIdx", DType::kInt64);
      if (s.known()) check_shape(c, "ShuffleIdx", Shape{s.numel(0, s.rank() - 1)});
      c.same_shape("X@GRAD", "Out@GRAD");
    })
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [places = op.in("ShuffleIdx"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        const int64_t rows = c[places].numel(), width = width_of(c[dout].shape());
        const int64_t* place = c[places].data<int64_t>();
        const T* from = c[dout].data<T>();
        T* to = zeroed<T>(c, dx);
        for (int64_t i = 0; i < rows; ++i) {
          AB_CHECK(place[i] >= 0 && place[i] < rows, InvalidArgument, "ShuffleIdx must be from 0 to {}, got {}",
                   rows - 1, place[i]);
          std::copy_n(from + i * width, width, to + place[i] * width);
        }
      };
    });

void infer_crop(InferContext& c) {
  const auto& requested = c.attr<std::vector<int32_t>>("shape");
  const Shape& x = c.in("X").shape;
  const int n = static_cast<int>(requested.size());
  AB_CHECK(n > 0 && n < x.rank(), InvalidArgument, "shape must have 1 to {} extents, got {}", x.rank() - 1, n);
  std::vector<int64_t> shape = x.to_vector();
  for (int i = 0; i < n; ++i) {
    int64_t& extent = shape[shape.size() - static_cast<size_t>(n) + static_cast<size_t>(i)];
    AB_CHECK(requested[i] > 0 && (extent == kUnknown || requested[i] <= extent), InvalidArgument,
             "shape must be from 1 to the extents of X {}, got {} at index {}", x.str(), requested[i], i);
    extent = requested[i];
  }
  c.set_out("Out", Shape(shape), c.in("X").dtype);
}

// Copies the crop of size `shape` at `offsets` of an image, axis after axis.
template <class T>
void copy_part(const Shape& image, const Shape& part, const int64_t* offsets, int axis, const T* from, T** to) {
  const int64_t step = image.numel(axis + 1, image.rank());
  if (axis + 1 == image.rank()) {
    *to = std::copy_n(from + offsets[axis], part[axis], *to);
  } else {
    for (int64_t i = 0; i < part[axis]; ++i) {
      copy_part(image, part, offsets, axis + 1, from + (offsets[axis] + i) * step, to);
    }
  }
}

AB_OP(random_crop)
    .doc(
        "Out = for each image of X (its last axes, one per extent of `shape`), a crop of that shape at a random "
        "position.")
    .in("X", "[..., image] numbers")
    .with(seed_state)
    .out("Out", "[..., shape]")
    .attr<std::vector<int32_t>>("shape", {}, "extents of the crops")
    .infer(infer_crop)
    .no_grad("images are data")
    .cpu<float, double, int32_t, int64_t, uint8_t, int16_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [draw = Draw(op), axes = static_cast<int>(op.attr<std::vector<int32_t>>("shape").size()), x = op.in("X"),
              out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const Shape image = s.slice(s.rank() - axes, s.rank()), part = c[out].shape().slice(s.rank() - axes, s.rank());
        const int64_t images = s.numel(0, s.rank() - axes), size = image.numel();
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        const Philox random = draw.start(c);
        int64_t offsets[kMaxRank] = {};
        for (int64_t n = 0; n < images; ++n) {
          for (int a = 0; a < axes; ++a) offsets[a] = below(random, n * axes + a, image[a] - part[a] + 1);
          copy_part(image, part, offsets, 0, from + n * size, &to);
        }
      };
    });

}  // namespace
}  // namespace anabranch::tensor::random_rows_op
