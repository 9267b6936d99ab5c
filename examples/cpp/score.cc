// Scores text with a model that fluid.io.save_inference_model wrote, without Python.
//
//   score MODEL SCHEMA FILE...      a line for each line of the files: what the model computes, values apart by spaces
//
// SCHEMA is a file that says which columns are which fed variable (src/data/row_format.h); the examples in Python write
// one next to each model: score demo_out/model demo_out/model/schema.txt demo_out/clicks/test.txt
#include <cstdio>

#include "columns.h"
#include "engine/predictor.h"

using namespace anabranch;

namespace {

void print_rows(const Tensor& scores) {
  const int64_t rows = scores.shape()[0], width = rows ? scores.shape().numel() / rows : 0;
  const auto* value = scores.data<float>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < width; ++k) std::printf(k ? " %.7g" : "%.7g", *value++);
    std::printf("\n");
  }
}

void score(Predictor* predictor, data::Dataset* text) {
  const auto stream = text->open({.ordered = true});
  data::Batch batch;
  while (stream->next(&batch)) print_rows(predictor->run(batch.columns)[0]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: score MODEL SCHEMA FILE...\n");
    return 2;
  }
  try {
    Predictor predictor(load_model({argv[1]}));
    data::Dataset text(columns(predictor.model(), predictor.model().feeds, argv[2], {argv + 3, argv + argc}));
    score(&predictor, &text);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
