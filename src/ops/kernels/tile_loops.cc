#include "ops/kernels/tile_loops.h"

#include <unordered_map>

namespace anabranch {
namespace {

std::unordered_map<std::string, TileOp>& table() {
  static std::unordered_map<std::string, TileOp> tiles;
  return tiles;
}

}  // namespace

bool declare_tile(const std::string& type, TileOp op) { return table().emplace(type, std::move(op)).second; }

const TileOp* find_tile(const std::string& type) {
  const auto it = table().find(type);
  return it == table().end() ? nullptr : &it->second;
}

bool declare_tile(const std::string& type, const char* x, int64_t grain, UnaryLoop loop) {
  const auto make = [x, loop](const KernelArgs& op, const std::string&) -> TileLoop {
    return [at = op.in(x).first, loop](const float* const* in, float* out, int64_t n) { loop(in[at], out, n); };
  };
  return declare_tile(type, {make, grain});
}

bool declare_tile(const std::string& type, const char* a, const char* b, int64_t grain, BinaryLoop loop) {
  const auto make = [a, b, loop](const KernelArgs& op, const std::string&) -> TileLoop {
    return [x = op.in(a).first, y = op.in(b).first, loop](const float* const* in, float* out, int64_t n) {
      loop(in[x], in[y], out, n);
    };
  };
  return declare_tile(type, {make, grain});
}

}  // namespace anabranch
