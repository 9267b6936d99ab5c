// A fully connected layer of a quantized model in one op, made of the quantization of X, mul, the conversion back,
// elementwise_add and an activation by the pass fuse_quantized. The product is one of 8-bit integers where its sums are
// exact, so it has the bits of the separate ops; else it is the product that these compute.
#include <atomic>
#include <cmath>
#include <memory>

#include "ops/kernels/flat_loop.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/workspace.h"
#include "ops/math/fc_parts.h"
#include "ops/quantize/int8_product.h"
#include "ops/quantize/levels.h"

namespace anabranch::quantize::fc_op {
namespace {

constexpr int64_t kRowsOfChunk = 32;  // two tiles of AMX
constexpr int64_t kMostChunks = 16;

struct Dims {
  int64_t m, k, n;
};

// The steps after the product, chunk by chunk while it is in the cache.
struct Finish {
  float scale, range;
  const float* bias;  // one number for each column, or null
  UnaryLoop act;      // or null

  void operator()(float* out, int64_t rows, int64_t columns) const {
    const int64_t n = rows * columns;
    in_wide_vectors([out, n, s = scale, most = range] {
      for (int64_t i = 0; i < n; ++i) out[i] = out[i] * s / most;
    });
    if (bias) simd::add_to_rows(out, columns, bias, rows, columns);
    if (act) act(out, out, n);
  }
};

// [0, n) of levels as integers; false if one is NaN.
bool to_integers(const float* levels, int8_t* out, int64_t n) {
  bool numbers = true;
  in_wide_vectors([levels, out, n, &numbers] {
    int unordered = 0;
    for (int64_t i = 0; i < n; ++i) {
      const bool is_nan = levels[i] != levels[i];
      unordered |= is_nan;
      out[i] = static_cast<int8_t>(static_cast<int32_t>(is_nan ? 0.0f : levels[i]));
    }
    numbers = unordered == 0;
  });
  return numbers;
}

class Layer {
 public:
  explicit Layer(int32_t bits) : levels_(levels_of(bits)) {}

  void run(const KernelContext& c, const Dims& d, const float* x, const Tensor& weights, uint64_t version, float* out,
           const Finish& finish) {
    if (d.m == 0 || d.n == 0) return;
    if (version != version_) {
      integers_ = d.k > 0 && Int8Product::is_exact() && product_.set(weights.data<float>(), d.k, d.n, levels_);
      version_ = version;
    }
    const Rounding<float> rounding{finish.scale, static_cast<float>(levels_)};
    if (integers_ && finish.scale > 0 && std::isfinite(finish.scale) && in_integers(c, d, x, rounding, out, finish)) {
      return;
    }
    Workspace room;
    auto* levels = room.get<float>(d.m * d.k);
    rounding(c, x, levels, d.m * d.k);
    gemm_.run(c, {.m = d.m, .n = d.n, .k = d.k}, levels, weights.data<float>(), out);
    c.parallel_for(d.m, kCheapGrain / std::max<int64_t>(1, d.n) + 1,
                   [=](int64_t begin, int64_t end) { finish(out + begin * d.n, end - begin, d.n); });
  }

 private:
  // False if X has NaN.
  bool in_integers(const KernelContext& c, const Dims& d, const float* x, const Rounding<float>& rounding, float* out,
                   const Finish& finish) {
    const int64_t step = std::max(kRowsOfChunk, ((d.m + kMostChunks - 1) / kMostChunks + 15) / 16 * 16);
    const int64_t count = (d.m + step - 1) / step, rest = d.m - (count - 1) * step;
    product_.prepare(count > 1 ? step : rest, rest, static_cast<size_t>(count));
    std::atomic<bool> numbers{true};
    c.parallel_each(count, 1, [&](int64_t i) {
      const int64_t rows = i + 1 < count ? step : rest, begin = i * step * d.k, n = rows * d.k;
      Workspace room;
      auto* levels = room.get<int8_t>(n);
      if (!quantize(x + begin, n, Rounding<float>::in_vectors(d.m * d.k) - begin, rounding, levels)) numbers = false;
      float* to = out + i * step * d.n;
      product_.run(static_cast<size_t>(i), rows, levels, to);
      finish(to, rows, d.n);
    });
    return numbers;
  }

  // The halves of the first `even` numbers become even.
  static bool quantize(const float* x, int64_t n, int64_t even, const Rounding<float>& rounding, int8_t* levels) {
    constexpr int64_t kTile = 1024;
    float tile[kTile];
    bool numbers = true;
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t length = std::min(kTile, n - i);
      rounding(x + i, tile, 0, length, even - i);
      numbers = to_integers(tile, levels + i, length) && numbers;
    }
    return numbers;
  }

  int64_t levels_;
  Int8Product product_;
  Gemm<float> gemm_;
  bool integers_ = false;
  uint64_t version_ = 0;
};

AB_OP(quantized_fc)
    .doc(
        "Out = activation(round(X / Scale levels) Y Scale / max_range + Bias), with X flattened to a matrix and "
        "clamped.")
    .in("X", "[rows..., columns...] float32")
    .in("Scale", "[1] float32: X that becomes the largest level")
    .in("Y", "[columns, N] float32: levels of the weights, which no op writes while the program runs")
    .in_optional("Bias", "[N], or [1]")
    .out("Out", "[rows..., N]")
    .with(math::flat_attrs)
    .with(bit_length)
    .attr<float>("max_range", 127.0f, "as in fake_dequantize_max_abs")
    .attr<std::string>("activation", "", "op whose gradient reads only Out; empty: none")
    .effects(kEngineOnly)
    .traits(kRowWise)
    .infer([](InferContext& c) {
      const math::Flat flat(c.op());
      flat.check(c.in("X").shape, c.in("Y").shape);
      check_numel(c, "Scale", 1);
      c.set_out("Out", flat.out(c.in("X").shape, c.in("Y").shape), c.in("X").dtype);
      c.share_lod("Out", "X");
      math::check_bias(c);
    })
    .no_grad("it is for inference")
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      const TileOp* act = math::activation(op, "");
      const auto layer = std::make_shared<Layer>(op.attr<int32_t>("bit_length"));
      return [=, flat = math::Flat(op.op()), range = op.attr<float>("max_range"), unary = act ? act->unary : nullptr,
              x = op.in("X"), scale = op.in("Scale"), y = op.in("Y"), bias = op.in("Bias"), out = op.out("Out"),
              repeated = std::vector<float>()](KernelContext& c) mutable {
        const GemmDims d = flat.dims(c[x].shape(), c[y].shape());
        const float* add = bias ? c[bias].data<float>() : nullptr;
        if (bias && c[bias].numel() != d.n) {
          repeated.assign(static_cast<size_t>(d.n), *add);
          add = repeated.data();
        }
        layer->run(c, {d.m, d.k, d.n}, c[x].data<float>(), c[y], c.value(y).version() + 1, c[out].mutable_data<float>(),
                   {number_of<float>(c, scale), range, add, unary});
      };
    });

}  // namespace
}  // namespace anabranch::quantize::fc_op
