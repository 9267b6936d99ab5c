// Rates of a growable table next to those of the memory: rows of the same bytes in a plain array, read, and read and
// written, at random places.
//
//     table_rates RULE ROWS KEYS THREADS ROUNDS
//
// RULE is sgd, adagrad or adam; KEYS is uniform or zipf (exponent 1). Rows are 16 floats. Each round measures all four
// rates one after another, each thread with its own keys; "name value" lines say the millions of rows a second of
// each round, and what the table takes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/tensor.h"
#include "sparse/growable_table.h"

namespace {

using namespace anabranch;
using sparse::GrowableTable;
using sparse::RowRule;

constexpr int64_t kWidth = 16, kBatch = 16384, kBatches = 128, kAhead = 16;
constexpr int64_t kMostArrayBytes = int64_t{2} << 30;  // a larger one is not slower
constexpr int64_t kLine = 64;

using Line __attribute__((vector_size(kLine))) = float;

uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Settings {
  RowRule rule;
  int64_t rows;
  bool zipf;
  int threads, rounds;
  int64_t record_bytes() const { return kWidth * 4 * (1 + rules::info_of(rule).moments); }
  int64_t array_rows() const { return std::min(rows, kMostArrayBytes / record_bytes()); }
};

// The work of one thread: the same numbers as keys of the table and as places of the array.
struct Load {
  std::vector<int64_t> keys;
  std::vector<uint32_t> places;
  std::vector<float> out, grads;
  sparse::KeyOrder order;
  GrowableTable::Scratch scratch;
  float sum = 0;

  Load(const Settings& s, uint64_t seed) : out(kBatch * kWidth), grads(kBatch * kWidth, 1e-3f) {
    uint64_t state = scramble(seed + 1);
    for (int64_t i = 0; i < kBatch * kBatches + kAhead; ++i) {
      state += 0x9e3779b97f4a7c15u;
      const double u = static_cast<double>(scramble(state) >> 11) * 0x1p-53;
      const auto n = static_cast<double>(s.rows);
      const auto rank = std::min(static_cast<int64_t>(s.zipf ? std::pow(n, u) - 1 : n * u), s.rows - 1);
      keys.push_back(static_cast<int64_t>(scramble(static_cast<uint64_t>(rank))));
      places.push_back(
          static_cast<uint32_t>(static_cast<uint64_t>(keys.back()) % static_cast<uint64_t>(s.array_rows())));
    }
  }
};

void read_array(const Settings& s, const char* array, Load* load) {
  Line sum = {};
  const int64_t bytes = s.record_bytes();
  for (int64_t i = 0; i < kBatch * kBatches; ++i) {
    __builtin_prefetch(array + load->places[i + kAhead] * bytes);
    sum += *reinterpret_cast<const Line*>(array + load->places[i] * bytes);
  }
  load->sum += sum[0];
}

void change_array(const Settings& s, char* array, Load* load) {
  const int64_t bytes = s.record_bytes();
  for (int64_t i = 0; i < kBatch * kBatches; ++i) {
    char* ahead = array + load->places[i + kAhead] * bytes;
    char* row = array + load->places[i] * bytes;
    for (int64_t b = 0; b < bytes; b += kLine) {
      __builtin_prefetch(ahead + b, 1);
      *reinterpret_cast<Line*>(row + b) += 1.0f;
    }
  }
}

void look_up(GrowableTable& table, Load* load) {
  for (int64_t b = 0; b < kBatches; ++b) {
    table.pull(load->keys.data() + b * kBatch, kBatch, {.train = true}, load->out.data(), &load->order, nullptr);
    load->sum += load->out[0];
  }
}

void update(GrowableTable& table, RowRule rule, Load* load) {
  sparse::RecordUpdate how;
  how.rule = rule;
  how.rate = 1e-3f;
  how.beta1 = 0.9f;
  how.beta2 = 0.999f;
  how.epsilon = 1e-8f;
  for (int64_t b = 0; b < kBatches; ++b) {
    table.update(load->keys.data() + b * kBatch, kBatch, load->grads.data(), how, &load->scratch, nullptr);
  }
}

// Millions of rows a second of all threads together.
double rate(std::vector<Load>& loads, const std::function<void(Load*)>& work) {
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t t = 1; t < loads.size(); ++t) threads.emplace_back([&, t] { work(&loads[t]); });
  work(&loads[0]);
  for (auto& t : threads) t.join();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return 1e-6 * static_cast<double>(kBatch * kBatches) * static_cast<double>(loads.size()) / passed.count();
}

void fill(GrowableTable& table, int64_t rows) {
  std::vector<int64_t> keys(kBatch);
  std::vector<float> out(kBatch * kWidth);
  sparse::KeyOrder order;
  for (int64_t row = 0; row < rows; row += kBatch) {
    const int64_t n = std::min(kBatch, rows - row);
    for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<int64_t>(scramble(static_cast<uint64_t>(row + i)));
    table.pull(keys.data(), n, {.train = true}, out.data(), &order, nullptr);
  }
}

void measure(const Settings& s) {
  sparse::TableOptions options;
  options.width = kWidth;
  options.rule = s.rule;
  options.low = -0.1f;
  options.high = 0.1f;
  GrowableTable table("table", options);
  const auto begin = std::chrono::steady_clock::now();
  fill(table, s.rows);
  const std::chrono::duration<double> filled = std::chrono::steady_clock::now() - begin;
  const auto memory = allocate_buffer(static_cast<size_t>(s.array_rows() * s.record_bytes()));
  std::memset(memory.get(), 0, static_cast<size_t>(s.array_rows() * s.record_bytes()));
  char* array = static_cast<char*>(memory.get());
  std::vector<Load> loads;
  for (int t = 0; t < s.threads; ++t) loads.emplace_back(s, static_cast<uint64_t>(t));
  const sparse::TableStats stats = table.stats();
  fmt::print(
      "rows {}\nfill {:.2f}\nbytes_beyond_key_and_record {:.2f}\n", stats.rows,
      1e-6 * static_cast<double>(s.rows) / filled.count(),
      static_cast<double>(stats.bytes) / static_cast<double>(stats.rows) - static_cast<double>(8 + s.record_bytes()));
  for (int round = 0; round < s.rounds; ++round) {
    fmt::print("array_read {:.2f}\n", rate(loads, [&](Load* l) { read_array(s, array, l); }));
    fmt::print("look_up {:.2f}\n", rate(loads, [&](Load* l) { look_up(table, l); }));
    fmt::print("array_change {:.2f}\n", rate(loads, [&](Load* l) { change_array(s, array, l); }));
    fmt::print("update {:.2f}\n", rate(loads, [&](Load* l) { update(table, s.rule, l); }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const std::vector<std::string> names = {"sgd", "adagrad", "adam"};
  const auto rule = args.empty() ? names.end() : std::find(names.begin(), names.end(), args[0]);
  if (args.size() != 5 || rule == names.end() || (args[2] != "uniform" && args[2] != "zipf")) {
    fmt::print(stderr, "usage: {} sgd|adagrad|adam ROWS uniform|zipf THREADS ROUNDS\n", argv[0]);
    return 2;
  }
  const Settings s{static_cast<RowRule>(rule - names.begin()), std::stoll(args[1]), args[2] == "zipf",
                   std::stoi(args[3]), std::stoi(args[4])};
  if (s.rows < 1 || s.threads < 1 || s.threads > 64 || s.rounds < 1) {
    fmt::print(stderr, "{}: a number is out of range\n", argv[0]);
    return 2;
  }
  measure(s);
}
