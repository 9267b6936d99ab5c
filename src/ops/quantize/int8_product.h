// Products of levels as integers of 8 bits, by oneDNN. Their sums are exact, so they do not depend on the processor or
// on how the rows are split, and equal the sums in float32 as long as these are exact, too.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "ops/kernels/dnnl.h"

namespace anabranch::quantize {

// Not thread-safe itself: its slots are.
class Int8Product {
 public:
  // Whether the library adds up without saturation here, which needs VNNI or AMX.
  static bool is_exact();

  // Takes the weights, a matrix [k, n]. False if one is not a level of 8 bits, or if sums over inputs of up to
  // `most` could exceed 2^24, from where on float32 does not represent each integer.
  bool set(const float* weights, int64_t k, int64_t n, int64_t most);

  // Makes what run() needs for products of `rows` and of `rest` rows in slots [0, slots).
  void prepare(int64_t rows, int64_t rest, size_t slots);
  // out[rows, n] = x[rows, k] weights
  void run(size_t slot, int64_t rows, const int8_t* x, float* out);

 private:
  struct Slot {
    dnnl::memory x, out, scratch;
  };
  struct Rows {
    dnnl::matmul primitive;
    dnnl::memory::desc x, out, scratch;
    dnnl::memory weights;  // in the layout of the primitive
    std::vector<Slot> slots;
  };
  Rows make(int64_t rows);
  void prepare(int64_t rows, size_t slots);
  dnnl::memory packed(const dnnl::memory::desc& layout);

  int64_t k_ = 0, n_ = 0;
  std::vector<int8_t> weights_;
  std::vector<dnnl::memory> packed_;  // one for each layout that a primitive asks for
  std::map<int64_t, Rows> by_rows_;
};

}  // namespace anabranch::quantize
