#include "base/mutant.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace anabranch {

int mutant_active = 0;
alignas(kMaxMutants) unsigned char mutant_hits[kMaxMutants];  // a page

namespace {

// Before any static object of this library is made: declarations of ops have sites as well.
__attribute__((constructor(101))) void read_switch() {
  const char* value = std::getenv("AB_MUTANT");
  if (!value) return;
  mutant_active = std::strcmp(value, "record") == 0 ? -1 : std::atoi(value);
  // Forks note what they reach in the same page, so that nothing is lost however they end.
  if (mutant_active < 0)
    mmap(mutant_hits, kMaxMutants, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

// Other programs that a test starts leave what they reached where the test's own process looks for it.
__attribute__((destructor)) void leave_hits() {
  const char* folder = std::getenv("AB_MUTANT_HITS");
  if (mutant_active >= 0 || !folder) return;
  char path[4096];
  std::snprintf(path, sizeof path, "%s/%d.hits", folder, static_cast<int>(getpid()));
  std::FILE* file = std::fopen(path, "wb");
  if (!file) return;
  std::fwrite(mutant_hits, 1, sizeof mutant_hits, file);
  std::fclose(file);
}

}  // namespace
}  // namespace anabranch

extern "C" {
__attribute__((visibility("default"))) void ab_mutant_set(int n) { anabranch::mutant_active = n; }
__attribute__((visibility("default"))) int ab_mutant_take(unsigned char* hits) {
  std::memcpy(hits, anabranch::mutant_hits, sizeof anabranch::mutant_hits);
  std::memset(anabranch::mutant_hits, 0, sizeof anabranch::mutant_hits);
  return anabranch::kMaxMutants;
}
}
