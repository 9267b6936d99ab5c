// Fed batches: checked against the program, and split into one slice per replica.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/tensor.h"
#include "ir/program.h"

namespace anabranch {

// The feed of each replica: slices[replica][i] belongs to the i-th fed variable.
using Slices = std::vector<std::vector<Tensor>>;

struct FeedSplit {
  const std::vector<std::string>* names;  // of the fed variables, for messages
  const std::vector<char>* whole;         // by variable: passed unchanged to every replica
  int replicas = 1;
  bool refuse_idle = false;  // fewer slices than replicas are an error
};

// A fed variable, as the program declares it.
struct Fed {
  // NotFound for a name that the program does not have.
  Fed(const ir::Program& program, const std::string& name);

  std::string name;
  DType dtype;
  Shape declared;
  bool checked;      // created by fluid.data, which promises to compare what is fed with its declaration
  bool persistable;  // fed whole to every replica, unless there is exactly one whole per replica
};

// A fed value that is not a tensor, or that breaks the promise of fluid.data.
class BadFeed : public Error {
 public:
  explicit BadFeed(std::string message) : Error(ErrorKind::kInvalidArgument, std::move(message)) {}
};

// Checks a fed value: it must have at least one axis, its sequences must cover all rows, and its shape and dtype must
// fit the declaration of fluid.data. `devices` replicas share the rows. Missing trailing axes of extent 1 are added,
// except with FLAGS_fluid_exact.
void check_fed(const Fed& fed, int devices, Tensor* value);

// Slices of ceil(rows / replicas) rows each, or sequences if there are any; returns the number of replicas that have
// rows. `slices` is reused. ShapeMismatch if two feeds give rows to different numbers of replicas.
int split_feed(std::span<const Tensor> batch, const FeedSplit& how, Slices* slices);

}  // namespace anabranch
