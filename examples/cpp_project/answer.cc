// Asks a model that fluid.io.save_inference_model wrote, without Python.
//
//   answer MODEL NUMBER...      fills one row of the first input, and prints the row of each output
#include <cstdio>
#include <cstdlib>

#include "engine/predictor.h"

using namespace anabranch;

namespace {

Tensor row_of(const std::string& name, int count, char** words) {
  Tensor row(Shape{1, count}, DType::kFloat32);
  for (int i = 0; i < count; ++i) {
    char* end = words[i];
    row.mutable_data<float>()[i] = std::strtof(words[i], &end);
    AB_CHECK(end != words[i] && *end == 0, InvalidArgument, "{} must be numbers, got {}", name, words[i]);
  }
  return row;
}

void print(const std::string& name, const Tensor& value) {
  std::printf("%s", name.c_str());
  for (int64_t i = 0; i < value.shape().numel(); ++i) std::printf(" %.7g", value.data<float>()[i]);
  std::printf("\n");
}

void answer(const std::string& folder, int count, char** words) {
  Predictor predictor(load_model({folder}));
  const auto& names = predictor.model();
  AB_CHECK(names.feeds.size() == 1, InvalidArgument, "the model takes {} inputs, and this program gives one",
           names.feeds.size());
  const std::vector<Tensor> inputs{row_of(names.feeds[0], count, words)};
  const auto& outputs = predictor.run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) print(names.fetches[i], outputs[i]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: answer MODEL NUMBER...\n");
    return 2;
  }
  try {
    answer(argv[1], argc - 2, argv + 2);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
