// Sources of a step's fetches: the values of each fetched variable, on the replicas that have it.
#pragma once
#include <string>
#include <vector>

#include "core/value.h"
#include "engine/compiled_program.h"

namespace anabranch {

class FetchSlots {
 public:
  // Adds the next fetched variable. `kept`: a parameter or other state, which training threads may share.
  void add(std::string name, std::vector<Value*> values, bool kept);
  const std::vector<std::vector<Value*>>& values() const { return values_; }  // by fetch, then replica
  Fetched collect(size_t fetch) const;                                        // copies of one fetch
  const Tensor& tensor(size_t fetch) const;                                   // of the first replica
  double mean(size_t fetch) const;  // of the elements of the first replica's tensor

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<Value*>> values_;
  std::vector<bool> kept_;
};

}  // namespace anabranch
