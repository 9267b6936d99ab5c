// The inner loops of connectionist temporal classification, in logarithms of float64, in the widest vectors of the
// machine. The same bits wherever an array is split. Single-threaded.
#pragma once
#include <cstdint>

namespace anabranch::sequence::loops {

// out[s] = add[s] + log(exp(a[s]) + exp(b[s]) + exp(c[s] + c_more[s])); -infinity means no path. Keeps NaN.
struct LogSum {
  const double *a, *b, *c, *c_more, *add;
  double* out;
};
void log_sum(const LogSum& row, int64_t n);

// out[s] = exp(a[s] + b[s] - from)
void share(const double* a, const double* b, double from, double* out, int64_t n);

}  // namespace anabranch::sequence::loops
