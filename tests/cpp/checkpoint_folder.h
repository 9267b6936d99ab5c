// A folder of checkpoints as anabranch.Checkpoints writes it, and the model that it trains: y = rows of table t + w. In
// version n, the rows of all keys are n, and w is 1000 n, so that an answer tells its version.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/model_files.h"
#include "io/files.h"
#include "opdef/append_op.h"
#include "sparse/table_chain.h"
#include "table_helpers.h"

namespace anabranch::test {

namespace fs = std::filesystem;

constexpr int64_t kRowWidth = 3, kKeys = 40;

inline uint32_t crc32_of(const std::string& bytes) {
  uint32_t sum = ~0u;
  for (const char c : bytes) {
    sum ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
  }
  return ~sum;
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<int64_t>(bytes.size()));
}

inline void set_w(Scope& scope, float value) {
  Tensor& w = scope.var("w")->as<Tensor>();
  w.resize({kRowWidth}, DType::kFloat32);
  std::fill_n(w.mutable_data<float>(), kRowWidth, value);
}

// The model before its first version: its answers are 0.
inline Model counting_model() {
  Model model{ir::Program::make(), Scope::make(), {"ids"}, {"y"}};
  ir::Block& block = model.program->global_block();
  block.create_var({.name = "ids", .shape = {kUnknown, 1}, .dtype = DType::kInt64});
  block.create_var({.name = "t", .kind = VarKind::kSelectedRows, .shape = {kUnknown, kRowWidth}, .persistable = true});
  block.create_var({.name = "w", .shape = {kRowWidth}, .persistable = true});
  append_op(block, {"lookup_growable",
                    {{"W", {"t"}}, {"Ids", {"ids"}}},
                    {{"Out", {"rows"}}},
                    {{"width", kRowWidth}, {"last_is_one", true}, {"is_test", true}}});
  append_op(block, {"elementwise_add", {{"X", {"rows"}}, {"Y", {"w"}}}, {{"Out", {"y"}}}, {{"axis", 1}}});
  sparse::GrowableTable::put(model.scope->var("t"),
                             std::make_shared<sparse::GrowableTable>("t", sparse::test::options(kRowWidth)));
  set_w(*model.scope, 0);
  return model;
}

// Completes a folder with the links of table t, which are there: `w`, and the status.
inline void write_version(const std::string& folder, int64_t number, const uint64_t (&run)[2],
                          const sparse::LinkSums& sums, const Tensor& w) {
  const auto scope = Scope::make();
  scope->var("w")->as<Tensor>().copy_from(w);
  io::FileSet files;
  io::save_vars(*scope, {"w"}, folder, "values", &files);
  files.commit();
  const std::string values = folder + "/values";
  std::string listed = fmt::format("\"values\": [{}, {}]", fs::file_size(values), crc32_of(bytes_of(values)));
  for (const auto& [suffix, sum] : {std::pair(".t.changes", sums.changes), std::pair(".t", sums.whole)}) {
    if (sum == 0) continue;
    listed += fmt::format(", \"values{}\": [{}, \"{:016x}\"]", suffix, fs::file_size(values + suffix), sum);
  }
  const std::string text = fmt::format(
      "{{\"chain\": {{\"run\": \"{:016x}{:016x}\"}}, \"files\": {{{}}}, \"format\": 1, \"step\": {}, \"time\": 12.5, "
      "\"variables\": {{\"dense\": [\"w\"], \"tables\": [\"t\"]}}",
      run[0], run[1], listed, 10 * number);
  put_bytes(folder + "/status.json", fmt::format("{}, \"check\": {}}}", text, crc32_of(text + "}")));
}

class CheckpointFolder {
 public:
  explicit CheckpointFolder(const std::string& name) : root(sparse::test::scratch_path(name)) {
    fs::remove_all(root);
    fs::create_directories(root);
  }
  std::string path(int64_t number) const { return fmt::format("{}/checkpoint-{:06}", root, number); }

  // Version n+1 after version n. `whole`: it has all rows, too. `w`: another value of w.
  int64_t write(bool whole, float w) {
    const int64_t number = ++last_.number;
    const std::string writing = root + "/.writing", values = writing + "/values";
    fs::create_directories(writing);
    const auto scope = Scope::make();
    set_w(*scope, w);
    const sparse::LinkSums sums = write_links(values + ".t", whole, static_cast<float>(number));
    write_version(writing, number, last_.run, sums, scope->var("w")->tensor());
    fs::rename(writing, path(number));
    last_.previous = number;
    last_.previous_sums = sums;
    return number;
  }
  int64_t write(bool whole = false) { return write(whole, 1000 * static_cast<float>(last_.number + 1)); }
  void another_run() {
    last_ = {};
    last_.run[0] = 77;
  }

  const std::string root;

 private:
  sparse::LinkSums write_links(const std::string& path, bool whole, float value) {
    std::string rows;
    for (int64_t key = 0; key < kKeys; ++key) {
      const uint32_t seen = 1;
      const std::vector<float> numbers(kRowWidth, value);
      rows.append(sparse::view_of(key)).append(sparse::view_of(seen));
      rows.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    }
    std::optional<io::AtomicFile> all, some;
    if (whole) all.emplace(path);
    if (last_.previous >= 0) some.emplace(path + ".changes");
    const auto header = sparse::header_of(sparse::test::options(kRowWidth), false, 0, 1);
    sparse::LinksWriter writer("t", last_, header, true, {}, all ? &*all : nullptr, some ? &*some : nullptr);
    writer.add(rows, rows);
    const sparse::LinkSums sums = writer.end();
    if (all) all->commit();
    if (some) some->commit();
    return sums;
  }

  sparse::LinkPlace last_{{5, 6}, 0, -1, {}, 0};
};

}  // namespace anabranch::test
