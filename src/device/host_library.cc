#include "device/host_library.h"

#include <map>
#include <string>

namespace anabranch::device {
namespace {

std::map<std::string, HostLibrary>& libraries() {
  static auto& all = *new std::map<std::string, HostLibrary>();
  return all;
}

}  // namespace

bool offer_library(const char* key, HostLibrary library) { return libraries().emplace(key, library).second; }

const HostLibrary* find_library(const char* key) {
  const auto found = libraries().find(key);
  return found == libraries().end() ? nullptr : &found->second;
}

}  // namespace anabranch::device
