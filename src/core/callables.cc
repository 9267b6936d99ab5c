#include "core/callables.h"

#include <deque>
#include <mutex>

#include "base/error.h"

namespace anabranch {
namespace {

struct Registry {
  std::mutex mutex;
  std::deque<Callable> callables;  // a deque: entries do not move
};

Registry& registry() {
  static auto* const made = new Registry;  // never destroyed: its functions belong to an interpreter that exits earlier
  return *made;
}

}  // namespace

int add_callable(Callable callable) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.callables.push_back(std::move(callable));
  return static_cast<int>(r.callables.size()) - 1;
}

const Callable& find_callable(int id) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  AB_CHECK(id >= 0 && static_cast<size_t>(id) < r.callables.size(), NotFound,
           "this process has no function of number {}: programs with py_func run where they were built", id);
  return r.callables[static_cast<size_t>(id)];
}

}  // namespace anabranch
