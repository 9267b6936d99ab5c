#include "open_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

namespace anabranch::cuda {
namespace {

std::mutex mutex;
std::string all_opened;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Folders besides the library path, the first first.
std::vector<std::string> places_of(const Needed& needed) {
  std::vector<std::string> places;
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&open_library), &here) && here.dli_fname) {
    const std::string packages = folder_of(folder_of(here.dli_fname));
    places.push_back(packages + "/" + needed.wheel);
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(name);
    if (!root || !*root) continue;
    for (const char* below : {"/lib64", "/lib"}) places.push_back(std::string(root) + below);
  }
  places.push_back("/usr/local/cuda/lib64");
  return places;
}

// One place after another.
class Search {
 public:
  Search(const Needed& needed, const TakeAll& take) : needed_(needed), take_(take) {}

  bool loaded_already() { return use(dlopen(needed_.file, RTLD_NOW | RTLD_NOLOAD), "what is loaded already"); }
  bool in_library_path() {
    void* library = dlopen(needed_.file, RTLD_NOW | RTLD_LOCAL);
    if (!library) note("the library path", reason(needed_.file));
    return use(library, "the library path");
  }
  bool in(const std::string& folder) {
    const std::string path = folder + "/" + needed_.file;
    if (access(path.c_str(), F_OK) != 0) {
      note(folder, "not there");
      return false;
    }
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) note(folder, reason(path));
    return use(library, folder);
  }
  const std::string& notes() const { return notes_; }
  int version() const { return version_; }

 private:
  void note(const std::string& place, const std::string& why) {
    notes_ += said(notes_.empty() ? "" : ", ", place, " (", why, ")");
  }
  static std::string reason(const std::string& file) {
    const std::string why = dlerror();
    const bool absent = why.find(file + ": cannot open shared object file: No such file") != std::string::npos;
    return absent ? "not there" : why;
  }
  bool use(void* library, const std::string& place) {
    if (!library) return false;
    Symbols symbols(library);
    const std::function<int()> version = take_(symbols);
    if (!symbols.missing().empty()) {
      note(place, "lacks " + symbols.missing());
    } else if (version_ = version(); version_ < needed_.oldest) {
      note(place, "version " + version_text(version_));
    } else {
      return true;
    }
    dlclose(library);
    return false;
  }

  const Needed& needed_;
  const TakeAll& take_;
  std::string notes_;
  int version_ = 0;
};

bool found(Search& search, const Needed& needed) {
  if (search.loaded_already() || search.in_library_path()) return true;
  for (const std::string& place : places_of(needed)) {
    if (search.in(place)) return true;
  }
  return false;
}

}  // namespace

void* Symbols::find(const char* name) {
  void* symbol = dlsym(library_, name);
  if (!symbol) missing_ += said(missing_.empty() ? "" : ", ", name);
  return symbol;
}

void open_library(const Needed& needed, const TakeAll& take) {
  Search search(needed, take);
  if (!found(search, needed)) {
    fail(AB_UNAVAILABLE, needed.name, " ", version_text(needed.oldest), " or newer was not found; looked for ",
         needed.file, " in ", search.notes());
  }
  const std::lock_guard lock(mutex);
  all_opened += said(all_opened.empty() ? "" : " ", needed.name, " ", version_text(search.version()));
}

std::string opened_libraries() {
  const std::lock_guard lock(mutex);
  return all_opened;
}

std::string version_text(int version) { return said(version / 10000, ".", version % 10000 / 100, ".", version % 100); }

}  // namespace anabranch::cuda
