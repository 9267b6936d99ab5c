// The inner loops of linear chains for float32, one sequence at a time, in the widest vectors of the machine. Weights
// from one tag to the next are in rows of crf_width() elements, padded with zeros. Single-threaded.
#pragma once
#include <cstdint>

namespace anabranch::sequence::loops {

inline int64_t crf_width(int64_t tags) { return (tags + 15) / 16 * 16; }

struct CrfRows {
  int64_t tags, rows;
  const float* x_exps;   // [rows, tags]
  const float* weights;  // [tags, width]: from each tag to the next; backwards: to each from the next
  float* scratch;        // [2 width]
};

// alpha [rows, tags]: normalized sums over all paths that end at a tag; sums [rows]: the sums before normalization.
// first: factors of the first tag. Returns the sum over last tags of alpha * last.
float crf_forward(const CrfRows& c, const float* first, const float* last, float* alpha, float* sums);

// marginal [rows, tags]: probabilities of tags; next [rows, tags]: g x_exps beta / z, zeros in the first row; z [rows]:
// the sum of alpha * beta, where beta are the normalized sums over all paths that start after a tag. last: factors of
// the last tag.
void crf_backward(const CrfRows& c, const float* last, const float* alpha, float g, float* marginal, float* next,
                  float* z);

}  // namespace anabranch::sequence::loops
