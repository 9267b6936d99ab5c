// Plain loops in the wider vectors of a machine that has them. A loop that compilers have vectors for is compiled
// twice, for the instruction set that all machines have and for AVX2, and gives the same bits in both: there is no
// contraction, and the order of its operations is the source's. Loops that need more than a compiler's vectors are
// Highway's (simd.h).
#pragma once

namespace anabranch {

bool has_avx2();  // as Highway sees the machine, so that both are capped alike

#if defined(__x86_64__) && defined(__GNUC__)
template <class Fn> [[gnu::target("avx2"), gnu::flatten]] void run_avx2(const Fn& fn) { fn(); }

// Runs fn(), a loop that calls nothing but what can stand in it.
template <class Fn> void in_wide_vectors(const Fn& fn) { has_avx2() ? run_avx2(fn) : fn(); }
#else
template <class Fn> void run_avx2(const Fn& fn) { fn(); }
template <class Fn> void in_wide_vectors(const Fn& fn) { fn(); }
#endif

}  // namespace anabranch
