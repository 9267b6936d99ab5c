// The switch of planted defects. Every source file of the build `mutants` includes it first.
#pragma once

namespace anabranch {

inline constexpr int kMaxMutants = 4096;
extern int mutant_active;  // the number of the defect that is on; 0: none; negative: sites are noted as they are reached
extern unsigned char mutant_hits[kMaxMutants];

inline bool mutant(int n) {
  if (__builtin_expect(mutant_active < 0, 0)) mutant_hits[n] = 1;
  return __builtin_expect(mutant_active == n, 0);
}

}  // namespace anabranch

extern "C" {
void ab_mutant_set(int n);
int ab_mutant_take(unsigned char* hits);  // copies the sites reached since the last call; returns how many there can be
}
