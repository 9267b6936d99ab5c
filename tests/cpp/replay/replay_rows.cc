// Runs models on raw rows that tests/trials/raw_pack.py has packed, and compares the bits of the scores with those that
// a reader's pass gave. Rows that the reader refused must be refused.
//
//   replay_rows FILE      status 1 when a score differs, or a refused row is accepted
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/flags.h"
#include "engine/predictor.h"
#include "io/files.h"
#include "packed.h"

using namespace anabranch;
using replay::Reader;

namespace {

struct Counts {
  int models = 0, rows = 0, refused = 0, wrong = 0;
};

using Row = std::vector<std::string_view>;

std::vector<Row> read_rows(Reader* in) {
  std::vector<Row> rows(in->number());
  for (Row& row : rows) {
    row.resize(in->number());
    for (std::string_view& value : row) value = in->text();
  }
  return rows;
}

bool is_refused(data::RowInputs* inputs, const Row& row) {
  inputs->clear();
  try {
    inputs->add(row);
    return false;
  } catch (const Error& e) {
    return e.kind() == ErrorKind::kInvalidArgument;
  }
}

// Adding 0 to 0 of either sign gives 0, as the operators of a saved model do.
bool same_bits(const Tensor& got, std::string_view expected) {
  std::vector<float> values(static_cast<size_t>(got.shape().numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = got.data<float>()[i] + 0.0f;
  return std::string_view(reinterpret_cast<const char*>(values.data()), 4 * values.size()) == expected;
}

void replay_model(Reader* in, Counts* counts) {
  const std::string folder(in->text());
  Predictor predictor(load_model({folder}));
  data::RowInputs inputs = row_inputs(predictor.model());
  const std::vector<Row> good = read_rows(in), bad = read_rows(in);
  for (const Row& row : bad) {
    const bool refused = is_refused(&inputs, row);
    counts->refused += refused;
    if (!refused && ++counts->wrong) std::printf("%s: a bad row is accepted\n", folder.c_str());
  }
  inputs.clear();
  for (const Row& row : good) inputs.add(row);
  const std::vector<Tensor>& outputs = predictor.run(inputs.tensors());
  AB_CHECK(in->number() == outputs.size(), InvalidArgument, "{}: another number of outputs", folder);
  for (const Tensor& output : outputs) {
    if (!same_bits(output, in->text()) && ++counts->wrong) std::printf("%s: a score differs\n", folder.c_str());
  }
  ++counts->models;
  counts->rows += static_cast<int>(good.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: replay_rows FILE\n");
    return 2;
  }
  try {
    set_flag("FLAGS_flush_denormals", false);
    const std::string file = io::read_file(argv[1]);
    Reader in(file);
    Counts counts;
    while (!in.done()) replay_model(&in, &counts);
    std::printf("%d models, %d rows, %d refused, %d wrong\n", counts.models, counts.rows, counts.refused, counts.wrong);
    return counts.wrong != 0 || counts.rows == 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
