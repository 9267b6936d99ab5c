#include "opdef/tile.h"

namespace anabranch {

TileOp tile_of(std::string_view x, int64_t grain, UnaryLoop loop) {
  const auto make = [x = std::string(x), loop](const KernelArgs& op, const std::string&) -> TileLoop {
    return [at = op.in(x).first, loop](const float* const* in, float* out, int64_t n) { loop(in[at], out, n); };
  };
  return {.make = make, .grain = grain, .unary = loop};
}

TileOp tile_of(std::string_view a, std::string_view b, int64_t grain, BinaryLoop loop) {
  const auto make = [a = std::string(a), b = std::string(b), loop](const KernelArgs& op,
                                                                   const std::string&) -> TileLoop {
    return [x = op.in(a).first, y = op.in(b).first, loop](const float* const* in, float* out, int64_t n) {
      loop(in[x], in[y], out, n);
    };
  };
  return {.make = make, .grain = grain, .binary = loop};
}

}  // namespace anabranch
