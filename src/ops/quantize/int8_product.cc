#include "ops/quantize/int8_product.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace anabranch::quantize {
namespace {

using dnnl::memory;

constexpr size_t kMostRows = 64;  // numbers of rows that are kept: batches of ever new sizes must not keep them all
constexpr float kMostLevel = 127;
constexpr int64_t kMostSum = int64_t{1} << 24;

memory::desc matrix(int64_t rows, int64_t columns, memory::data_type type) {
  return {{rows, columns}, type, memory::dims{columns, 1}};
}

// The largest sums that saturate where the library has no instruction for 8 bits, and an odd one, which it halves
// there.
bool sums_are_exact() {
  constexpr int64_t kRows = 32, kDepth = 64, kColumns = 16;
  Int8Product product;
  std::vector<float> weights(kDepth * kColumns, kMostLevel), out(kRows * kColumns);
  weights[0] = 1;
  std::vector<int8_t> x(kRows * kDepth, static_cast<int8_t>(kMostLevel));
  if (!product.set(weights.data(), kDepth, kColumns, static_cast<int64_t>(kMostLevel))) return false;
  product.prepare(kRows, kRows, 1);
  product.run(0, kRows, x.data(), out.data());
  const float all = kMostLevel * kMostLevel * kDepth, odd = all - kMostLevel * (kMostLevel - 1);
  return out[0] == odd && std::all_of(out.begin() + 1, out.begin() + kColumns, [&](float v) { return v == all; });
}

}  // namespace

bool Int8Product::is_exact() {
  static const bool exact = sums_are_exact();
  return exact;
}

bool Int8Product::set(const float* weights, int64_t k, int64_t n, int64_t most) {
  by_rows_.clear();
  packed_.clear();
  k_ = k;
  n_ = n;
  weights_.resize(static_cast<size_t>(k * n));
  std::vector<int64_t> sums(static_cast<size_t>(n));
  for (int64_t i = 0; i < k * n; ++i) {
    const float level = weights[i];
    if (!(std::abs(level) <= kMostLevel) || level != std::nearbyint(level)) return false;
    weights_[static_cast<size_t>(i)] = static_cast<int8_t>(level);
    sums[static_cast<size_t>(i % n)] += std::abs(static_cast<int64_t>(level)) * most;
  }
  return std::all_of(sums.begin(), sums.end(), [](int64_t sum) { return sum <= kMostSum; });
}

memory Int8Product::packed(const memory::desc& layout) {
  for (const memory& made : packed_) {
    if (made.get_desc() == layout) return made;
  }
  memory given(matrix(k_, n_, memory::data_type::s8), dnnl_engine(), weights_.data());
  memory made(layout, dnnl_engine());
  dnnl::reorder(given, made).execute(dnnl_stream(), given, made);
  dnnl_stream().wait();
  packed_.push_back(made);
  return made;
}

Int8Product::Rows Int8Product::make(int64_t rows) {
  Rows made;
  made.x = matrix(rows, k_, memory::data_type::s8);
  made.out = matrix(rows, n_, memory::data_type::f32);
  const memory::desc any({k_, n_}, memory::data_type::s8, memory::format_tag::any);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const DnnlSingleThread alone;
  const dnnl::matmul::primitive_desc desc({made.x, any, made.out}, attr, dnnl_engine());
  made.primitive = dnnl::matmul(desc);
  made.scratch = desc.scratchpad_desc();
  made.weights = packed(desc.weights_desc());
  return made;
}

void Int8Product::prepare(int64_t rows, size_t slots) {
  auto found = by_rows_.find(rows);
  if (found == by_rows_.end()) found = by_rows_.emplace(rows, make(rows)).first;
  Rows& r = found->second;
  while (r.slots.size() < slots) {
    const auto empty = [](const memory::desc& d) { return memory(d, dnnl_engine(), DNNL_MEMORY_NONE); };
    r.slots.push_back({empty(r.x), empty(r.out), memory(r.scratch, dnnl_engine())});
  }
}

void Int8Product::prepare(int64_t rows, int64_t rest, size_t slots) {
  if (by_rows_.size() >= kMostRows) by_rows_.clear();
  prepare(rows, slots);
  prepare(rest, slots);
}

void Int8Product::run(size_t slot, int64_t rows, const int8_t* x, float* out) {
  Rows& r = by_rows_.find(rows)->second;
  Slot& s = r.slots[slot];
  // The library takes inputs through pointers to mutable data, but does not write to them.
  s.x.set_data_handle(const_cast<int8_t*>(x));
  s.out.set_data_handle(out);
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, s.x.get()},
                                  {DNNL_ARG_WEIGHTS, r.weights.get()},
                                  {DNNL_ARG_DST, s.out.get()},
                                  {DNNL_ARG_SCRATCHPAD, s.scratch.get()}};
  const DnnlSingleThread alone;
  execute(r.primitive, args);
}

}  // namespace anabranch::quantize
