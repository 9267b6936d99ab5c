// The floating-point mode of a thread: rounding, masked exceptions, and whether denormal numbers are flushed to zero.
// Many processors compute with denormal numbers far more slowly than with others, and masks of -1e9 and dead units
// produce them in quantity. Loops and jobs run in the mode of the thread that started them (thread_pool.h), so results
// do not depend on the number of threads.
#pragma once
#include <immintrin.h>

namespace anabranch {

inline unsigned float_mode() {
  constexpr unsigned kStickyFlags = 0x3f;  // exceptions that have occurred: no part of the mode
  return _mm_getcsr() & ~kStickyFlags;
}

// The calling thread computes in this mode during the object's lifetime, and in its own again after it.
class InFloatMode {
 public:
  explicit InFloatMode(unsigned mode) : before_(float_mode()), changed_(mode != before_) {
    if (changed_) _mm_setcsr(mode);
  }
  ~InFloatMode() {
    if (changed_) _mm_setcsr(before_);
  }
  InFloatMode(const InFloatMode&) = delete;

 private:
  const unsigned before_;
  const bool changed_;
};

constexpr unsigned kFlushDenormals = _MM_FLUSH_ZERO_ON | 0x0040;  // results and operands (DENORMALS_ARE_ZERO)

inline unsigned float_mode_of_kernels(bool flush_denormals) {
  return flush_denormals ? float_mode() | kFlushDenormals : float_mode();
}
// Of user's functions that kernels call: NumPy warns where denormals are flushed.
inline unsigned float_mode_of_callables() { return float_mode() & ~kFlushDenormals; }

}  // namespace anabranch
