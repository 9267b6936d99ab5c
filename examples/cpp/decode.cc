// Decodes text with a model that fluid.io.save_inference_model wrote, and compares with what is right; no Python.
//
//   decode FIGURE MODEL SCHEMA FILE RIGHT [TOKEN...]
//
// prints a line for each line of FILE, the tokens that the model finds, and the figure last. RIGHT holds the right
// tokens, a line each, commas between them. Tokens named at the end (begin and end of a sentence) are left out.
//
//   exact    the share of lines without an error
//   errors   edit distance over the number of right tokens
//   spans    F1 of spans; a token is 0 at the start of a span, 1 inside, 2 at its end, 3 for a span of one token
//
// The examples in Python write all that is needed: decode spans sequences_out/model sequences_out/model/schema.txt
// sequences_out/letters.txt sequences_out/tags.txt
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "columns.h"
#include "engine/predictor.h"

using namespace anabranch;

namespace {

using Tokens = std::vector<int64_t>;

// One fed variable of two levels holds the first row of each beam: one row a line, zero.
Tensor beginning(const ir::Var& var, int64_t lines) {
  const std::vector<int64_t> one_each(static_cast<size_t>(lines), 1);
  Tensor t(Shape{lines, 1}, var.dtype);
  std::memset(t.mutable_raw(), 0, t.bytes());
  t.set_lod(lod_from_lengths({one_each, one_each}));
  return t;
}

// The first sequence of each line; of several beams it is the best.
void append(const Tensor& found, const std::set<int64_t>& left_out, std::vector<Tokens>* lines) {
  const LoD& lod = found.lod();
  const std::vector<int64_t>& bounds = lod.back();
  for (size_t line = 0; line + 1 < lod.front().size(); ++line) {
    const auto first = static_cast<size_t>(lod.size() == 1 ? static_cast<int64_t>(line) : lod[0][line]);
    Tokens tokens;
    for (int64_t i = bounds[first]; i < bounds[first + 1]; ++i) {
      const int64_t token = found.dtype() == DType::kInt32 ? found.data<int32_t>()[i] : found.data<int64_t>()[i];
      if (!left_out.contains(token)) tokens.push_back(token);
    }
    lines->push_back(std::move(tokens));
  }
}

std::vector<Tokens> decode(const Model& model, const std::string& schema, const std::string& file,
                           const std::set<int64_t>& left_out) {
  const auto var_of = [&](const std::string& name) { return model.program->global_block().find_var(name); };
  const auto is_beam = [&](const std::string& name) { return var_of(name)->lod_level == 2; };
  std::vector<std::string> read;
  std::copy_if(model.feeds.begin(), model.feeds.end(), std::back_inserter(read), std::not_fn(is_beam));
  data::Dataset text(columns(model, read, schema, {file}));
  Predictor predictor(model);
  const auto stream = text.open({.ordered = true});
  data::Batch batch;
  std::vector<Tokens> lines;
  while (stream->next(&batch)) {
    std::vector<Tensor> inputs;
    for (size_t column = 0; const auto& name : model.feeds) {
      inputs.push_back(is_beam(name) ? beginning(*var_of(name), batch.rows) : batch.columns[column++]);
    }
    append(predictor.run(inputs)[0], left_out, &lines);
  }
  return lines;
}

std::vector<Tokens> right_ones(const std::string& file) {
  std::vector<Tokens> lines;
  const std::string text = io::read_file(file);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    Tokens tokens;
    for (size_t at = begin; at < end;) {
      const size_t comma = std::min(text.find(',', at), end);
      tokens.push_back(std::stoll(text.substr(at, comma - at)));
      at = comma + 1;
    }
    lines.push_back(std::move(tokens));
    begin = end + 1;
  }
  return lines;
}

double exact(const std::vector<Tokens>& found, const std::vector<Tokens>& right) {
  double same = 0;
  for (size_t i = 0; i < right.size(); ++i) same += found[i] == right[i];
  return same / static_cast<double>(right.size());
}

int64_t distance(const Tokens& a, const Tokens& b) {
  std::vector<int64_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t corner = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t changed = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

double errors(const std::vector<Tokens>& found, const std::vector<Tokens>& right) {
  int64_t wrong = 0, tokens = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    wrong += distance(found[i], right[i]);
    tokens += static_cast<int64_t>(right[i].size());
  }
  return static_cast<double>(wrong) / static_cast<double>(tokens);
}

std::set<std::pair<size_t, size_t>> spans_of(const Tokens& tags) {
  std::set<std::pair<size_t, size_t>> spans;
  size_t begin = 0;
  for (size_t i = 1; i <= tags.size(); ++i) {
    if (i < tags.size() && tags[i - 1] < 2 && (tags[i] == 1 || tags[i] == 2)) continue;
    spans.emplace(begin, i);
    begin = i;
  }
  return spans;
}

double spans(const std::vector<Tokens>& found, const std::vector<Tokens>& right) {
  double both = 0, all = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    const auto mine = spans_of(found[i]), expected = spans_of(right[i]);
    for (const auto& span : mine) both += static_cast<double>(expected.count(span));
    all += static_cast<double>(mine.size() + expected.size());
  }
  return 2 * both / all;
}

const std::map<std::string, double (*)(const std::vector<Tokens>&, const std::vector<Tokens>&)> kFigures = {
    {"exact", exact}, {"errors", errors}, {"spans", spans}};

void run(char** argv, const std::set<int64_t>& left_out) {
  const auto found = decode(load_model({argv[2]}), argv[3], argv[4], left_out), right = right_ones(argv[5]);
  AB_CHECK(found.size() == right.size() && !right.empty(), InvalidArgument,
           "{} must have a line for each line of {}: {} and not {}", argv[5], argv[4], found.size(), right.size());
  for (const Tokens& tokens : found) {
    for (size_t i = 0; i < tokens.size(); ++i) std::printf(i ? ",%lld" : "%lld", static_cast<long long>(tokens[i]));
    std::printf("\n");
  }
  std::printf("%s: %.4f\n", argv[1], kFigures.at(argv[1])(found, right));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || !kFigures.contains(argv[1])) {
    std::fprintf(stderr, "usage: decode exact|errors|spans MODEL SCHEMA FILE RIGHT [TOKEN...]\n");
    return 2;
  }
  try {
    std::set<int64_t> left_out;
    for (int i = 6; i < argc; ++i) left_out.insert(std::stoll(argv[i]));
    run(argv, left_out);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
