// Where libraries are looked for, and what is said when none will do. The ones that the plug-in needs are only opened
// and asked for their version, which goes well without a driver, where they are installed.
#include "cuda/open_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda/open_cublas.h"
#include "cuda/open_cudnn.h"
#include "cuda/open_nccl.h"

namespace anabranch::cuda {
namespace {

using testing::HasSubstr;

const std::string folder = AB_LIBRARIES;

// The function `answer` of version 2.0.0 or later of the library.
int answer_of(const char* file) {
  int (*version)() = nullptr;
  int (*answer)() = nullptr;
  open_library({"Answers", file, "wheels/lib", 20000}, [&](Symbols& symbols) {
    symbols.take("answer_version", version).take("answer", answer);
    return std::function<int()>([&] { return version(); });
  });
  return answer();
}

std::string refused(const char* file) {
  try {
    answer_of(file);
  } catch (const Failure& e) {
    EXPECT_EQ(e.status(), AB_UNAVAILABLE);
    return e.what();
  }
  ADD_FAILURE() << "was opened";
  return "";
}

class CudaLibraries : public testing::Test {
 protected:
  void TearDown() override { unsetenv("CUDA_HOME"); }
  static void set_cuda_home(const std::string& below) { setenv("CUDA_HOME", (folder + below).c_str(), 1); }
};

TEST_F(CudaLibraries, SaysWhereItLooked) {
  set_cuda_home("/old");
  const std::string text = refused("libanswer_nowhere.so.1");
  EXPECT_THAT(
      text,
      HasSubstr(
          "Answers 2.0.0 or newer was not found; looked for libanswer_nowhere.so.1 in the library path (not there), "));
  EXPECT_THAT(text, HasSubstr("/wheels/lib (not there), " + folder + "/old/lib64 (not there), "));
  EXPECT_THAT(text, HasSubstr("/usr/local/cuda/lib64 (not there)"));
}

TEST_F(CudaLibraries, SaysWhatIsTooOldAndWhatLacksSomething) {
  set_cuda_home("/old");
  EXPECT_THAT(refused("libanswer.so.1"), HasSubstr(folder + "/old/lib (version 1.9.3)"));
  EXPECT_FALSE(dlopen((folder + "/old/lib/libanswer.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD)) << "it stays open";
  set_cuda_home("/lacking");
  EXPECT_THAT(refused("libanswer.so.1"), HasSubstr(folder + "/lacking/lib (lacks answer)"));
  set_cuda_home("/broken");
  EXPECT_THAT(refused("libanswer.so.1"), HasSubstr("broken/lib (" + folder + "/broken/lib/libanswer.so.1: "));
}

TEST_F(CudaLibraries, TakesTheFirstThatWillDo) {
  setenv("CUDA_PATH", (folder + "/good").c_str(), 1);
  set_cuda_home("/old");
  EXPECT_EQ(answer_of("libanswer.so.1"), 42);
  EXPECT_THAT(opened_libraries(), HasSubstr("Answers 2.0.1"));
  unsetenv("CUDA_PATH");
}

TEST_F(CudaLibraries, TakesLibrariesNextToThePlugin) { EXPECT_EQ(answer_of("libanswer_wheel.so.1"), 42); }

TEST_F(CudaLibraries, TakesLoadedLibraries) {
  void* loaded = dlopen((folder + "/loaded/libanswer_loaded.so.1").c_str(), RTLD_NOW);
  ASSERT_TRUE(loaded) << dlerror();
  EXPECT_EQ(answer_of("libanswer_loaded.so.1"), 42);
  dlclose(loaded);
}

template <class Open> void opens(Open open, const char* name) {
  try {
    open();
    EXPECT_THAT(opened_libraries(), HasSubstr(name));
  } catch (const Failure& e) {
    ASSERT_EQ(e.status(), AB_UNAVAILABLE);
    GTEST_SKIP() << e.what();
  }
}

TEST_F(CudaLibraries, OpensCublas) { opens(cublas_lt, "cuBLASLt 13."); }
TEST_F(CudaLibraries, OpensCudnn) { opens(cudnn, "cuDNN 9."); }
TEST_F(CudaLibraries, OpensNccl) { opens(nccl, "NCCL 2."); }

}  // namespace
}  // namespace anabranch::cuda
