// Chains of links: a table at the end of a chain has the bytes of the table that wrote it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/error.h"
#include "sparse/table_chain.h"
#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

namespace fs = std::filesystem;
using test::Keys;
using test::options;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<int64_t>(bytes.size()));
}

// The bytes of a full save.
std::string saved(GrowableTable& table) {
  const std::string path = test::scratch_path("full");
  test::save(table, path);
  return bytes_of(path);
}

void train(GrowableTable& table, const Keys& keys, uint64_t seed) {
  test::pull(table, keys);
  const auto grads = test::random_floats(keys.size() * static_cast<size_t>(table.options().width), seed);
  test::update(table, keys, grads, table.options().rule);
}

// Writes a chain, as a training process does.
class Writer {
 public:
  Writer(std::shared_ptr<GrowableTable> table, const std::string& folder)
      : table_(std::move(table)), folder_(test::scratch_path(folder)) {
    fs::remove_all(folder_);
    place_.run[0] = place_.run[1] = 7;
  }
  std::string path(int64_t number, bool whole) const {
    return fmt::format("{}/{}{}", folder_, whole ? "whole" : "changes", number);
  }
  template <class Fn> void write(bool whole, Fn&& meanwhile) {
    GrowableTable::Cut cut(table_, 200, whole ? CutKind::kBoth : CutKind::kChanges);
    meanwhile();
    const bool changes = cut.has_changes();
    std::optional<io::AtomicFile> all, some;
    if (whole) all.emplace(path(place_.number, true));
    if (changes) some.emplace(path(place_.number, false));
    const LinkSums sums = write_links(&cut, place_, all ? &*all : nullptr, some ? &*some : nullptr);
    if (all) all->commit();
    if (some) some->commit();
    cut.end(changes ? sums.changes : sums.whole);
    place_.previous = place_.number++;
    place_.previous_sums = sums;
  }
  void write(bool whole) {
    write(whole, [] {});
  }
  // From the whole link `from` to `to`.
  std::vector<std::string> chain(int64_t from, int64_t to) const {
    std::vector<std::string> paths{path(from, true)};
    for (int64_t n = from + 1; n <= to; ++n) paths.push_back(path(n, false));
    return paths;
  }
  GrowableTable& table() { return *table_; }
  LinkPlace& place() { return place_; }
  const std::string& folder() const { return folder_; }

 private:
  std::shared_ptr<GrowableTable> table_;
  std::string folder_;
  LinkPlace place_;
};

std::string loaded(const std::vector<std::string>& paths) {
  return saved(*GrowableTable::open("t", TableChain(paths)));
}

// Options under which rows go: by age, at the limit, and neither.
std::vector<TableOptions> options_of(RowRule rule) {
  TableOptions grows = options(3, rule), expires = grows, evicts = grows;
  expires.expire_after = 3;
  evicts.max_bytes = 120000;
  return {grows, expires, evicts};
}

TEST(TableLinks, EqualAFullSave) {
  for (const RowRule rule : test::kRules) {
    for (const TableOptions& o : options_of(rule)) {
      Writer w(std::make_shared<GrowableTable>("t", o), "equal");
      std::vector<std::string> full;
      for (uint64_t n = 0; n < 12; ++n) {
        for (uint64_t i = 0; i < 3; ++i) train(w.table(), test::random_keys(150, 10 * n + i, 1500 + 300 * n), n);
        full.push_back(saved(w.table()));
        w.write(n % 5 == 0, [&] { train(w.table(), test::random_keys(300, 1000 + n, 5000), n); });
      }
      for (int64_t from : {0, 5, 10}) {
        for (int64_t to = from; to < 12; ++to) EXPECT_EQ(loaded(w.chain(from, to)), full[static_cast<size_t>(to)]);
      }
      const bool rows_go = o.expire_after || o.max_bytes;
      EXPECT_EQ(LinkReader(w.path(7, false)).gone() > 0, rows_go);
    }
  }
}

TEST(TableLinks, HoldTheRowsThatChangedAndNoOthers) {
  Writer w(std::make_shared<GrowableTable>("t", options(8, RowRule::kAdam)), "size");
  Keys keys(10000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7919);
  train(w.table(), keys, 1);
  w.write(true);
  for (int i = 0; i < 3; ++i) train(w.table(), Keys(keys.begin(), keys.begin() + 500), 2);
  const auto row_bytes = w.table().header().row_bytes();
  EXPECT_EQ(w.table().changed_bytes(), static_cast<int64_t>(500 * row_bytes));
  w.write(false);
  EXPECT_EQ(LinkReader(w.path(1, false)).rows(), 500);
  EXPECT_LE(static_cast<double>(fs::file_size(w.path(1, false))), 1.05 * 500 * static_cast<double>(row_bytes));
  w.write(false);
  EXPECT_EQ(LinkReader(w.path(2, false)).rows(), 0);
  test::pull(w.table(), keys, /*train=*/false);
  EXPECT_EQ(w.table().changed_bytes(), 0);
}

// Keys that come and go between two links are in neither, and do not lengthen the lists of changes.
TEST(TableLinks, ForgetRowsThatCameAndWent) {
  TableOptions o = options(3);
  o.expire_after = 1;
  Writer w(std::make_shared<GrowableTable>("t", o), "went");
  w.write(true);
  int64_t largest = 0;
  for (uint64_t n = 0; n < 2000; ++n) {
    train(w.table(), test::random_keys(500, n, ~uint64_t{0}), n);
    largest = std::max(largest, w.table().stats().bytes);
  }
  const int64_t rows = w.table().stats().rows;
  EXPECT_LT(largest, 6 << 20);  // a million keys have come and gone
  const std::string full = saved(w.table());
  w.write(false);
  const LinkReader link(w.path(1, false));
  EXPECT_EQ(link.rows(), rows);
  EXPECT_EQ(link.gone(), 0);
  EXPECT_EQ(loaded(w.chain(0, 1)), full);
}

TEST(TableLinks, ChangesOfALinkThatWasNotWrittenAreInTheNextOne) {
  for (const TableOptions& o : options_of(RowRule::kAdagrad)) {
    Writer w(std::make_shared<GrowableTable>("t", o), "again");
    train(w.table(), test::random_keys(400, 1, 1000), 1);
    w.write(true);
    for (uint64_t n = 0; n < 4; ++n) {
      train(w.table(), test::random_keys(300, 2 + n, 2000), 2);
      GrowableTable::Cut cut(std::shared_ptr<GrowableTable>(&w.table(), [](GrowableTable*) {}), 500,
                             n % 2 ? CutKind::kBoth : CutKind::kChanges);
      CutRows rows;
      for (uint64_t i = 0; i < 5 * n; ++i) cut.next(&rows);
      train(w.table(), test::random_keys(100, 9 + n, 2000), 3);
    }
    const std::string full = saved(w.table());
    w.write(false);
    EXPECT_EQ(loaded(w.chain(0, 1)), full);
  }
}

TEST(TableLinks, GoOnWhereTheyWereLoaded) {
  Writer w(std::make_shared<GrowableTable>("t", options(3, RowRule::kAdam)), "resumed");
  train(w.table(), test::random_keys(400, 1, 1000), 1);
  w.write(true);
  train(w.table(), test::random_keys(100, 2, 1000), 1);
  w.write(false);
  train(w.table(), test::random_keys(100, 3, 1000), 1);  // lost
  const uint64_t since = w.table().recorded_since();
  w.table().load(TableChain(w.chain(0, 1)));
  w.table().record_since(since);
  EXPECT_EQ(w.table().recorded_since(), since);
  train(w.table(), test::random_keys(100, 4, 1000), 1);
  const std::string full = saved(w.table());
  w.write(false);
  EXPECT_EQ(loaded(w.chain(0, 2)), full);
  w.table().load(w.path(0, true));
  EXPECT_EQ(w.table().recorded_since(), 0u);
  EXPECT_THROW(w.write(false), Error);
}

TEST(TableLinks, AreReadIntoAFullTable) {
  TableOptions o = options(3);
  o.max_bytes = 120000;
  Writer w(std::make_shared<GrowableTable>("t", o), "full-table");
  train(w.table(), test::random_keys(5000, 1, ~uint64_t{0}), 1);
  w.write(true);
  train(w.table(), test::random_keys(5000, 2, ~uint64_t{0}), 1);
  w.write(false);
  EXPECT_GT(w.table().stats().evicted, 1000);
  EXPECT_EQ(loaded(w.chain(0, 1)), saved(w.table()));
}

std::string refusal(const std::vector<std::string>& paths) {
  try {
    TableChain chain(paths);
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

TEST(TableLinks, OutOfOrderAreRefusedByName) {
  const auto write = [](const std::string& name, const std::string& folder, uint64_t run) {
    Writer w(std::make_shared<GrowableTable>(name, options(3)), folder);
    w.place().run[0] = run;
    for (uint64_t n = 0; n < 4; ++n) {
      train(w.table(), test::random_keys(100, n, 1000), n);
      w.write(n == 0);
    }
    return w;
  };
  const Writer w = write("t", "one", 1), other = write("u", "two", 1), run = write("t", "three", 2);
  Writer again = write("t", "four", 1);
  EXPECT_EQ(refusal(w.chain(0, 3)), "none");
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal({w.path(0, true), w.path(2, false)}), "follows link 1");
  has(refusal({w.path(0, true), w.path(2, false), w.path(1, false)}), w.path(2, false));
  has(refusal({w.path(1, false), w.path(2, false)}), "a chain starts with a link of all rows");
  has(refusal({w.path(0, true), other.path(1, false)}), "to table u");
  has(refusal({w.path(0, true), run.path(1, false)}), "to run");
  has(refusal({w.path(0, true), w.path(0, true)}), "only be the first");
  has(refusal({}), "at least one");
  EXPECT_NE(refusal({w.path(0, true), w.path(9, false)}).find("does not exist"), std::string::npos);
  // Link 1 of another history of the same run.
  Writer forked(std::make_shared<GrowableTable>("t", options(3)), "five");
  forked.place().run[0] = 1;
  forked.write(true);
  train(forked.table(), test::random_keys(10, 1, 1000), 1);
  forked.write(false);
  has(refusal({w.path(0, true), forked.path(1, false)}), "checksum");
}

// A chain with any damage is refused; flips that a checksum does not see would load wrong rows.
TEST(TableLinks, RefuseDamage) {
  Writer w(std::make_shared<GrowableTable>("t", options(2, RowRule::kAdagrad)), "damage");
  for (uint64_t n = 0; n < 3; ++n) {
    train(w.table(), test::random_keys(60, n, 400), n);
    w.write(n == 0);
  }
  const auto paths = w.chain(0, 2);
  GrowableTable table("t", options(2, RowRule::kAdagrad));
  train(table, {1, 2, 3}, 1);
  const std::string before = saved(table);
  std::mt19937_64 draw(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::string& path = paths[draw() % paths.size()];
    const std::string whole = bytes_of(path);
    std::string bad = whole;
    switch (draw() % 4) {
      case 0: bad.resize(draw() % bad.size()); break;
      case 1: bad[draw() % bad.size()] ^= static_cast<char>(1 << draw() % 8); break;
      case 2: bad.append(draw() % 100 + 1, static_cast<char>(draw())); break;
      default:
        for (int i = 0; i < 8; ++i) bad[draw() % bad.size()] = static_cast<char>(draw());
    }
    if (bad == whole) continue;
    put_bytes(path, bad);
    EXPECT_THROW(table.load(TableChain(paths)), Error);
    put_bytes(path, whole);
  }
  EXPECT_EQ(saved(table), before);
  table.load(TableChain(paths));
  EXPECT_EQ(saved(table), saved(w.table()));
}

}  // namespace
}  // namespace anabranch::sparse
