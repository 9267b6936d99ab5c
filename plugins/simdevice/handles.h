// The objects to which the interface's pointers refer. A freed or invalid pointer is detected.
#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "failure.h"

namespace anabranch::simdevice {

template <class T> class Handles {
 public:
  explicit Handles(const char* what) : what_(what) {}

  T* add(std::unique_ptr<T> object) {
    known_.insert(object.get());
    all_.push_back(std::move(object));
    return all_.back().get();
  }
  T& check(T* object) const {
    need(known_.contains(object), "this is not ", what_, ", or it was freed");
    return *object;
  }
  void remove(T& object) {
    known_.erase(&object);
    std::erase_if(all_, [&](const auto& known) { return known.get() == &object; });
  }
  const std::vector<std::unique_ptr<T>>& all() const { return all_; }  // in the order they were made
  const char* what() const { return what_; }

 private:
  const char* const what_;
  std::vector<std::unique_ptr<T>> all_;
  std::unordered_set<const T*> known_;
};

}  // namespace anabranch::simdevice
