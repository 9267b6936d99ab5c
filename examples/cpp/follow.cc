// Answers with a model that follows a training run, without Python.
//
//   follow MODEL CHECKPOINTS      reads lines of ids, and prints for each line the version, and what the model computes
//
// MODEL was written by fluid.io.save_inference_model and takes ids [n, 1]; CHECKPOINTS is the folder of
// anabranch.Checkpoints, or a copy of it that another tool updates (docs/do/follow_checkpoints.md).
#include <cstdio>
#include <iostream>
#include <sstream>

#include "engine/follower.h"
#include "engine/predictor.h"

using namespace anabranch;

namespace {

Tensor ids_in(const std::string& line) {
  std::istringstream words(line);
  std::vector<int64_t> ids;
  for (int64_t id = 0; words >> id;) ids.push_back(id);
  AB_CHECK(words.eof() && !ids.empty(), InvalidArgument, "a line must have integers, got \"{}\"", line);
  Tensor out(Shape{static_cast<int64_t>(ids.size()), 1}, DType::kInt64);
  std::copy(ids.begin(), ids.end(), out.mutable_data<int64_t>());
  return out;
}

void answer(const std::string& model, const std::string& checkpoints) {
  Predictor predictor(load_model({model}));
  const Follower follower(checkpoints, predictor);
  for (std::string line; std::getline(std::cin, line);) {
    const Tensor& scores = predictor.run(std::vector{ids_in(line)})[0];
    std::printf("%lld:", static_cast<long long>(predictor.version()));
    for (int64_t i = 0; i < scores.numel(); ++i) std::printf(" %.7g", scores.data<float>()[i]);
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: follow MODEL CHECKPOINTS\n");
    return 2;
  }
  try {
    answer(argv[1], argv[2]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
