// The plug-in as it is built: what it exports, what it loads, and what it says where there is no driver.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "device/plugin_api.h"

namespace {

const ab_device_api* table() {
  void* library = dlopen(AB_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  void* entry = library ? dlsym(library, AB_DEVICE_SYMBOL) : nullptr;
  EXPECT_TRUE(entry);
  return entry ? reinterpret_cast<ab_device_entry>(entry)() : nullptr;
}

TEST(CudaPlugin, OffersTheWholeTable) {
  const ab_device_api* api = table();
  ASSERT_TRUE(api);
  EXPECT_EQ(api->size, sizeof(ab_device_api));
  EXPECT_STREQ(api->name, "cuda");
  for (size_t at = offsetof(ab_device_api, open); at < sizeof *api; at += sizeof(void*)) {
    void* function = nullptr;
    memcpy(&function, reinterpret_cast<const char*>(api) + at, sizeof function);
    EXPECT_TRUE(function) << "the function at byte " << at;
  }
}

TEST(CudaPlugin, OpensNeedingTheDriverAlone) {
  const ab_device_api* api = table();
  ASSERT_TRUE(api);
  int devices = -1;
  const int status = api->open(nullptr, &devices);
  char text[1024];
  api->last_error(text, sizeof text);
  std::stringstream loaded;
  loaded << std::ifstream("/proc/self/maps").rdbuf();
  for (const char* library : {"libcublas", "libcudnn", "libnccl", "libcudart"}) {
    EXPECT_EQ(loaded.str().find(library), std::string::npos) << library;
  }
  if (status == AB_OK) {
    ab_kernel kernel = nullptr;
    EXPECT_EQ(api->kernel_find("map/sigmoid/f32", &kernel), AB_OK);
    EXPECT_EQ(api->close(), AB_OK);
  } else {
    EXPECT_EQ(status, AB_UNAVAILABLE) << text;
    EXPECT_THAT(text, testing::HasSubstr("NVIDIA driver"));
    EXPECT_EQ(api->close(), AB_UNAVAILABLE);
  }
}

TEST(CudaPlugin, StaysBelowFortyMebibytes) { EXPECT_LT(std::filesystem::file_size(AB_PLUGIN), uintmax_t{40} << 20); }

}  // namespace
