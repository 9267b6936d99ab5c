#include "base/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "base/error.h"

namespace anabranch {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string find_plugin(const std::string& file) {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<void*>(&load_plugin), &here) || !here.dli_fname) return {};
  const std::string package = file.substr(0, file.rfind('.'));  // name of a wheel that ships the plug-in separately
  char real[PATH_MAX];
  for (const std::string& code :
       {std::string(here.dli_fname), std::string(realpath(here.dli_fname, real) ? real : "")}) {
    const std::string folder = folder_of(code);
    for (const std::string& place : {folder, folder + "/python", folder_of(folder) + "/" + package}) {
      std::string path = place + "/" + file;
      if (access(path.c_str(), R_OK) == 0) return path;
    }
  }
  return {};
}

}  // namespace

bool has_plugin(const std::string& file) { return !find_plugin(file).empty(); }

void* load_plugin(const std::string& file, const char* symbol, const std::string& without) {
  const std::string path = find_plugin(file);
  AB_CHECK(!path.empty(), Unsupported, "{} is not in this installation: {}", file, without);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  AB_CHECK(library, Unsupported, "{} cannot be loaded: {}", path, dlerror());
  void* found = dlsym(library, symbol);
  AB_CHECK(found, Unsupported, "{} has a different version", path);
  return found;
}

}  // namespace anabranch
