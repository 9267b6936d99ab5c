#include "base/parallel.h"

namespace anabranch {

void run_pieces(Parallel* parallel, int64_t n, int64_t piece, Parallel::Body body, void* fn) {
  if (parallel) return parallel->run(n, piece, body, fn);
  for (int64_t b = 0; b < n; b += piece) body(fn, b, b + piece < n ? b + piece : n);
}

}  // namespace anabranch
