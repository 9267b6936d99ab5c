// Plain loops in wider vectors. A loop that compilers vectorize is compiled twice, for the baseline instruction set and
// for AVX2, and gives the same bits in both: there is no contraction, and operations stay in source order. Loops that
// need more than a compiler's vectorization use Highway (simd.h).
#pragma once

namespace anabranch {

bool has_avx2();  // according to Highway, so that both respect the same caps

#if defined(__x86_64__) && defined(__GNUC__)
template <class Fn> [[gnu::target("avx2"), gnu::flatten]] void run_avx2(const Fn& fn) { fn(); }

// Runs fn(), a loop that calls only inlinable functions.
template <class Fn> void in_wide_vectors(const Fn& fn) { has_avx2() ? run_avx2(fn) : fn(); }
#else
template <class Fn> void run_avx2(const Fn& fn) { fn(); }
template <class Fn> void in_wide_vectors(const Fn& fn) { fn(); }
#endif

}  // namespace anabranch
