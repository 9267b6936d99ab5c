// CPU kernels for the keys of library calls (plugin_api.h), for devices without such libraries.
#pragma once
#include <cstddef>

namespace anabranch::device {

struct HostLibrary {
  size_t desc_size = 0;
  void (*run)(const void* desc, void* const* pointers, int count) = nullptr;  // throws
};

// Before main().
bool offer_library(const char* key, HostLibrary library);
const HostLibrary* find_library(const char* key);  // null if there is none

}  // namespace anabranch::device
