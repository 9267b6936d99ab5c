// Converts levels back to numbers, and numbers to integers for saved models.
#include <cstring>

#include "ops/quantize/levels.h"

namespace anabranch::quantize::dequantize_op {
namespace {

AB_OP(fake_dequantize_max_abs)
    .doc("Out = X Scale / max_range.")
    .in("X", "[...] float")
    .in("Scale", "[1] like X")
    .out("Out", "[...] like X")
    .attr<float>("max_range", 127.0f, "largest level")
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_numel(c, "Scale", 1);
      check_same_dtype(c, "Scale", "X");
      c.same_as("Out", "X");
    })
    .no_grad(kNoGrad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [most = static_cast<T>(op.attr<float>("max_range")), x = op.in("X"), scale = op.in("Scale"),
              out = op.out("Out")](KernelContext& c) {
        wide_map(c, kCheapGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(),
                 [s = number_of<T>(c, scale), most](T v) { return v * s / most; });
      };
    });

void infer_channels(InferContext& c) {
  const int n = c.n_in("Scales");
  AB_CHECK(n == 1 || n == 2, InvalidArgument, "Scales must list one or two tensors, got {}", n);
  const auto& bits = c.attr<std::vector<int32_t>>("quant_bits");
  AB_CHECK(static_cast<int>(bits.size()) >= n, InvalidArgument, "quant_bits must have {} numbers, got {}", n,
           bits.size());
  for (int i = 0; i < n; ++i) {
    AB_CHECK(bits[i] >= 2 && bits[i] <= 32, InvalidArgument, "quant_bits must be from 2 to 32, got {}", bits[i]);
    AB_CHECK(c.in("Scales", i).dtype == c.in("X").dtype, InvalidArgument, "Scales must hold {}, like X, got {}",
             dtype_name(c.in("X").dtype), dtype_name(c.in("Scales", i).dtype));
  }
  check_rank(c, "X", n, kMaxRank);
  const int64_t channels = c.in("X").shape[n - 1], have = c.in("Scales").shape.numel();
  AB_CHECK(have < 0 || channels == kUnknown || have == channels, ShapeMismatch,
           "Scales[0] must have {} elements, one for each channel, got {}", channels, have);
  AB_CHECK(n == 1 || c.in("Scales", 1).shape.numel() < 0 || c.in("Scales", 1).shape.numel() == 1, ShapeMismatch,
           "Scales[1] must have one element, got {}", c.in("Scales", n - 1).shape.str());
  c.same_as("Out", "X");
}

AB_OP(fake_channel_wise_dequantize_max_abs)
    .doc(
        "Out = X Scales[0] / (2^(quant_bits[0] - 1) - 1), with one scale per row of X. With two Scales: one scale per "
        "column, times Scales[1] / (2^(quant_bits[1] - 1) - 1).")
    .in("X", "[C, ...], or [N, C, ...] with two Scales, float")
    .in_list("Scales", "[C], and [1]")
    .out("Out", "like X")
    .attr<std::vector<int32_t>>("quant_bits", {8}, "number of bits of the levels, for each of the Scales")
    .dtype_of_input("X")
    .infer(infer_channels)
    .no_grad(kNoGrad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [bits = op.attr<std::vector<int32_t>>("quant_bits"), x = op.in("X"), scales = op.in("Scales"),
              out = op.out("Out")](KernelContext& c) {
        const bool two = scales.count == 2;
        const Shape& s = c[x].shape();
        const int64_t channels = s[two ? 1 : 0], width = s.numel(two ? 2 : 1, s.rank());
        T whole = T{1} / static_cast<T>(levels_of(bits[0]));
        if (two) whole *= *c.at(scales, 1).data<T>() / static_cast<T>(levels_of(bits[1]));
        const T *from = c[x].data<T>(), *scale = c.at(scales, 0).data<T>();
        T* to = c[out].mutable_data<T>();
        if (width == 0) return;
        c.parallel_each(c[x].numel() / width, kCheapGrain / width + 1, [=](int64_t r) {
          const T own = scale[r % channels];
          for (int64_t i = r * width; i < (r + 1) * width; ++i) to[i] = from[i] * own * whole;
        });
      };
    });

void infer_int8(InferContext& c) {
  check_dtype(c, "X", DType::kInt8);
  c.set_out("Out", c.in("X").shape, DType::kFloat32);
  c.share_lod("Out", "X");
}

AB_OP(dequantize_abs_max)
    .doc("Out = X Scale / max_range.")
    .in("X", "[...] int8")
    .in("Scale", "[1] float32")
    .out("Out", "[...] float32")
    .attr<float>("max_range", 127.0f, "largest level")
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      infer_int8(c);
      check_numel(c, "Scale", 1);
    })
    .no_grad(kNoGrad)
    .cpu<int8_t>([](auto, const KernelArgs& op) -> Kernel {
      return [most = op.attr<float>("max_range"), x = op.in("X"), scale = op.in("Scale"),
              out = op.out("Out")](KernelContext& c) {
        wide_map(c, kCheapGrain, c[x].numel(), c[x].data<int8_t>(), c[out].mutable_data<float>(),
                 [s = number_of<float>(c, scale), most](int8_t v) { return s * static_cast<float>(v) / most; });
      };
    });

AB_OP(dequantize_log)
    .doc("Out = Dict[X] where X >= 0, else -Dict[X + 128].")
    .in("X", "[...] int8")
    .in("Dict", "[128] float32: value of each level")
    .out("Out", "[...] float32")
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      infer_int8(c);
      check_numel(c, "Dict", 128);
    })
    .no_grad(kNoGrad)
    .cpu<int8_t>([](auto, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dict = op.in("Dict"), out = op.out("Out")](KernelContext& c) {
        wide_map(c, kCheapGrain, c[x].numel(), c[x].data<int8_t>(), c[out].mutable_data<float>(),
                 [number = c[dict].data<float>()](int8_t v) { return v < 0 ? -number[v + 128] : number[v]; });
      };
    });

// A row of the table: the minimum, the maximum, then 8-bit levels, four packed in each float.
constexpr int64_t kAhead = 2, kInFloat = 4;

void infer_lookup(InferContext& c) {
  check_rank(c, "W", 2, 2);
  check_ids_dtype(c, "Ids");
  check_rank(c, "Ids", 2, kMaxRank);
  check_dtype(c, "W", DType::kFloat32);
  const Shape& ids = c.in("Ids").shape;
  AB_CHECK(ids[ids.rank() - 1] == 1 || ids[ids.rank() - 1] == kUnknown, InvalidArgument,
           "the last axis of Ids must have extent 1, got {}", ids.str());
  const int64_t columns = c.in("W").shape[1];
  AB_CHECK(columns == kUnknown || columns >= kAhead, InvalidArgument, "W must have at least 2 columns, got {}",
           c.in("W").shape.str());
  std::vector<int64_t> shape = ids.to_vector();
  shape.back() = columns == kUnknown ? kUnknown : (columns - kAhead) * kInFloat;
  c.set_out("Out", Shape(shape), DType::kFloat32);
  c.share_lod("Out", "Ids");
}

void look_up(const float* row, int64_t floats, float* to) {
  const float low = row[0], step = (row[1] - row[0]) / 256.0f;
  for (int64_t i = 0; i < floats; ++i) {
    uint8_t levels[kInFloat];
    std::memcpy(levels, row + kAhead + i, sizeof levels);
    for (const uint8_t level : levels) *to++ = step * static_cast<float>(level) + low;
  }
}

AB_OP(lookup_table_dequant)
    .doc(
        "Out = the dequantized rows of W that Ids selects. A row stores its minimum, its maximum, and 8-bit levels "
        "between them, four packed in each float32. The row of padding_idx is 0.")
    .in("W", "[rows, 2 + n] float32")
    .in("Ids", "[..., 1] integers")
    .out("Out", "[..., 4 n] float32")
    .attr<int64_t>("padding_idx", int64_t{-1}, "id whose row is 0; -1: none")
    .dtype_of_input("W")
    .infer(infer_lookup)
    .no_grad("quantized tables are not trained")
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      return [padding = op.attr<int64_t>("padding_idx"), w = op.in("W"), ids = op.in("Ids"),
              out = op.out("Out")](KernelContext& c) {
        const int64_t rows = c[w].rows(), floats = c[w].row_elems() - kAhead, n = c[ids].numel();
        const float* table = c[w].data<float>();
        float* to = c[out].mutable_data<float>();
        visit_dtype(c[ids].dtype(), [&](auto id_tag) {
          const auto* id = c[ids].data<typename decltype(id_tag)::type>();
          for (int64_t i = 0; i < n; ++i, to += floats * kInFloat) {
            const auto row = static_cast<int64_t>(id[i]);
            if (padding != -1 && row == padding) {
              std::fill(to, to + floats * kInFloat, 0.0f);
              continue;
            }
            AB_CHECK(row >= 0 && row < rows, InvalidArgument, "Ids must be from 0 to {}, got {}", rows - 1, row);
            look_up(table + row * (floats + kAhead), floats, to);
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::quantize::dequantize_op
