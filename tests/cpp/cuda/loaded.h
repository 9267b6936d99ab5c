// A library of tests that is loaded before the plug-in looks for one of that name.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace anabranch::cuda {

class Loaded {
 public:
  explicit Loaded(const char* file) : library_(dlopen((std::string(AB_LIBRARIES) + file).c_str(), RTLD_NOW)) {
    EXPECT_TRUE(library_) << dlerror();
  }
  template <class Fn> Fn* function(const char* name) const { return reinterpret_cast<Fn*>(dlsym(library_, name)); }

 private:
  void* const library_;  // stays until the process ends, as the plug-in's tables do
};

}  // namespace anabranch::cuda
