// Libraries that are opened by name when they are first needed.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "../failure.h"

namespace anabranch::cuda {

using namespace plugin;

struct Wanted {
  const char* name;   // "cuBLASLt"
  const char* file;   // "libcublasLt.so.13"
  const char* wheel;  // where PyPI's wheels put it, below site-packages: "nvidia/cu13/lib"
  int oldest;         // 130000 for 13.0.0
};

// The functions of a library that may be the one. What it lacks is kept in `missing`.
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

// Takes the functions and returns the library's version; it is not asked for that when one is missing.
using TakeAll = std::function<std::function<int()>(Symbols&)>;

// The first of the places where the library is in a version that will do: loaded already, the library path, wheels
// beside this plug-in, CUDA_HOME, /usr/local/cuda. Unavailable says where it was looked for and what was wrong there.
// It stays open until the process ends.
void open_library(const Wanted& wanted, const TakeAll& take);

std::string opened_libraries();  // "cuBLASLt 13.1.0 NCCL 2.28.9"

std::string version_text(int version);  // "13.1.0" of 130100

}  // namespace anabranch::cuda

// Takes the function `symbol` into the field of that name.
#define AB_TAKE(table, symbol) take(#symbol, (table).symbol)
