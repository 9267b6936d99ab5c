// Libraries that are opened by name at first use.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "../failure.h"

namespace anabranch::cuda {

using namespace plugin;

struct Needed {
  const char* name;   // "cuBLASLt"
  const char* file;   // "libcublasLt.so.13"
  const char* wheel;  // location in PyPI's wheels, below site-packages: "nvidia/cu13/lib"
  int oldest;         // 130000 for 13.0.0
};

// The functions of a candidate library. `missing` lists those it lacks.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}
  template <class Fn> Symbols& take(const char* name, Fn*& to) {
    to = reinterpret_cast<Fn*>(find(name));
    return *this;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* find(const char* name);
  void* library_;
  std::string missing_;
};

// Resolves the functions and returns the library's version; the version is not queried if one is missing.
using TakeAll = std::function<std::function<int()>(Symbols&)>;

// The library from the first place with a suitable version: already loaded, the library path, wheels next to this plug-
// in, CUDA_HOME, /usr/local/cuda. Unavailable lists these places and what was wrong there. It stays open until the
// process exits.
void open_library(const Needed& needed, const TakeAll& take);

std::string opened_libraries();  // "cuBLASLt 13.1.0 NCCL 2.28.9"

std::string version_text(int version);  // "13.1.0" of 130100

}  // namespace anabranch::cuda

// Resolves the function `symbol` into the field of that name.
#define AB_TAKE(table, symbol) take(#symbol, (table).symbol)
