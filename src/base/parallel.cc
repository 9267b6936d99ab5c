#include "base/parallel.h"

namespace anabranch {

void run_chunks(Parallel* parallel, int64_t n, int64_t chunk, Parallel::Body body, void* fn) {
  if (parallel) return parallel->run(n, chunk, body, fn);
  for (int64_t b = 0; b < n; b += chunk) body(fn, b, b + chunk < n ? b + chunk : n);
}

}  // namespace anabranch
