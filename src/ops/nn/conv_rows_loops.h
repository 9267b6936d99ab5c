// The loops of ops/nn/conv_rows.h for each instruction set. Stateless; thread-safe.
#pragma once
#include <cstdint>

namespace anabranch::nn::rows {

// Where the elements of images lie: channel c of pixel p of a sample at block(c) + p * width + c % width.
struct Form {
  int64_t width = 0, blocks = 0, stride = 0;  // channels of a block; blocks; elements from one to the next
  int64_t channel(int64_t c) const { return c / width * stride + c % width; }
};

struct Tap {
  int64_t image, weight;  // elements from the first of a row, and rows from the first of a panel of weights
};

// Rows of images times a panel of weights: out[row, :] = sum over taps and channels of in[row + tap, c] weight[tap, c,
// :].
struct ImageJob {
  const float* in;
  const int32_t *from, *to;  // per row: its first element in the input and in the output
  int64_t rows;
  const Tap* taps;
  int64_t tap_count;
  Form form;             // of the input
  const float* weights;  // [tap, channel, panel]
  int64_t vectors;       // of a panel, up to Sizes::vectors
  int64_t place[4];      // of each vector in the output
  float* out;
};

// Pixels that one tap multiplies: `count` in one row of outputs.
struct Run {
  int64_t image, dout, count;
};

// sums[r, :] += over samples and runs of down[r] across[:], from zero if `first`; one of them are the images, the other
// the gradients of the outputs.
struct FilterJob {
  const float *down, *across;
  int64_t samples, down_sample, across_sample;  // elements from one sample to the next
  const Run* runs;
  int64_t run_count;
  bool turned;                     // the images are `down`
  int64_t down_step, across_step;  // elements from one pixel of a run to the next
  int64_t rows, vectors;           // up to Sizes::channels and filter_vectors
  int64_t place[4];                // of each vector in `across`
  bool first;
  float* sums;
};

struct Sizes {
  int64_t floats;                    // in a vector
  int64_t rows, vectors;             // of images at a time, and of a panel of their weights
  int64_t channels, filter_vectors;  // likewise of sums of filters
};

Sizes sizes();  // of this machine
void run(const ImageJob& job);
void run(const FilterJob& job);
// to[k, r] = from[r, k]; from_row, to_row: elements from one row to the next
void transpose(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to, int64_t to_row);

}  // namespace anabranch::nn::rows
