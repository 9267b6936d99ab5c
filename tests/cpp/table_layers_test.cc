// A table that follows a chain while it is read, and rows for serving.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>

#include "base/error.h"
#include "sparse/table_chain.h"
#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

using test::Keys;
using test::options;

void train(GrowableTable& table, const Keys& keys, uint64_t seed) {
  test::pull(table, keys);
  test::update(table, keys, test::random_floats(keys.size() * static_cast<size_t>(table.options().width), seed),
               RowRule::kSgd);
}

// Writes link `place.number` of a table; the path.
std::string write(const std::shared_ptr<GrowableTable>& table, const std::string& name, LinkPlace* place) {
  const std::string path = test::scratch_path(fmt::format("{}{}", name, place->number));
  GrowableTable::Cut cut(table, 1000, place->number == 0 ? CutKind::kBoth : CutKind::kChanges);
  io::AtomicFile file(path);
  const bool whole = place->number == 0;
  const LinkSums sums = write_links(&cut, *place, whole ? &file : nullptr, whole ? nullptr : &file);
  file.commit();
  cut.end(whole ? sums.whole : sums.changes);
  place->previous = place->number++;
  place->previous_sums = sums;
  return path;
}

TEST(TableLayers, APreviewReadsLikeTheTableWithItsLayer) {
  const auto table = std::make_shared<GrowableTable>("t", options(3));
  Keys all(50);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  train(*table, Keys(all.begin(), all.begin() + 20), 1);
  LinkPlace place;
  const TableChain first({write(table, "preview", &place)});
  const auto follows = std::make_shared<GrowableTable>("t", GrowableTable::for_lookups(first.last().table()));
  follows->load(first);
  train(*table, Keys(all.begin() + 10, all.begin() + 30), 2);
  table->remove(all.data(), 5);
  const TableChain next({write(table, "preview", &place)}, &first.last());
  const auto before = test::pull(*follows, all, false);
  const auto changes = follows->layer_of(next);
  const auto shown = GrowableTable::preview(follows, changes);
  EXPECT_EQ(test::pull(*shown, all, false), test::pull(*table, all, false));
  EXPECT_EQ(test::pull(*follows, all, false), before);
  follows->set_layer(changes);
  EXPECT_EQ(test::pull(*follows, all, false), test::pull(*table, all, false));
}

TEST(TableLayers, AreReadLikeTheTableThatWroteThem) {
  TableOptions o = options(3, RowRule::kAdam);
  o.expire_after = 3;
  const auto table = std::make_shared<GrowableTable>("t", o);
  const auto train_adam = [&](uint64_t seed) {
    const Keys keys = test::random_keys(300, seed, 2000);
    test::pull(*table, keys);
    test::update(*table, keys, test::random_floats(keys.size() * 3, seed), RowRule::kAdam);
  };
  train_adam(1);
  LinkPlace place;
  std::optional<TableChain> at(std::in_place, std::vector<std::string>{write(table, "layer", &place)});
  const auto follows = std::make_shared<GrowableTable>("t", GrowableTable::for_lookups(at->last().table()));
  follows->load(*at);
  Keys all(2000);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  int64_t gone = 0;
  for (uint64_t n = 0; n < 10; ++n) {
    train_adam(n + 10);
    TableChain next({write(table, "layer", &place)}, &at->last());
    gone += next.last().gone();
    const auto before = test::pull(*follows, all, /*train=*/false);
    follows->set_layer(follows->layer_of(next));
    const auto expected = test::pull(*table, all, /*train=*/false);
    EXPECT_NE(before, expected);
    EXPECT_EQ(test::pull(*follows, all, /*train=*/false), expected);
    follows->fold_layer();
    EXPECT_EQ(test::pull(*follows, all, /*train=*/false), expected);
    follows->set_layer(nullptr);
    EXPECT_EQ(test::pull(*follows, all, /*train=*/false), expected);
    EXPECT_EQ(follows->keys(), table->keys());  // zeros of keys that are gone take no rows
    at.emplace(std::move(next));
  }
  EXPECT_GT(gone, 100);
}

TEST(TableLayers, AreFoldedWhileOthersRead) {
  const auto table = std::make_shared<GrowableTable>("t", options(8));
  Keys keys(20000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 31);
  train(*table, keys, 1);
  LinkPlace place;
  const TableChain first({write(table, "fold", &place)});
  const auto follows = std::make_shared<GrowableTable>("t", GrowableTable::for_lookups(first.last().table()));
  follows->load(first);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] += 31 * 10000;  // half of them are new
  train(*table, keys, 2);
  const TableChain next({write(table, "fold", &place)}, &first.last());
  follows->set_layer(follows->layer_of(next));
  const auto expected = test::pull(*table, keys, /*train=*/false);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0}, reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!over) {
        wrong += test::pull(*follows, keys, /*train=*/false) != expected;
        ++reads;
      }
    });
  }
  while (reads < 2) std::this_thread::yield();
  follows->fold_layer();
  const int then = reads;
  while (reads < then + 2) std::this_thread::yield();
  over = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  follows->set_layer(nullptr);
  EXPECT_EQ(test::pull(*follows, keys, /*train=*/false), expected);
}

// A row of a table's file.
std::string row_of(int64_t key, const std::vector<float>& numbers) {
  std::string row;
  ShardCut::append_row(key, 7, numbers.data(), static_cast<int64_t>(numbers.size()), &row);
  return row;
}

std::vector<float> decoded(RowForm form, const std::string& encoded, int64_t width, int64_t* key) {
  std::string plain;
  decode_rows(form, width, encoded, &plain);
  EXPECT_EQ(plain.size(), 12 + static_cast<size_t>(width) * 4);
  std::memcpy(key, plain.data(), sizeof(*key));
  std::vector<float> out(static_cast<size_t>(width));
  std::memcpy(out.data(), plain.data() + 12, out.size() * 4);
  return out;
}

TEST(LinkRows, KeepWhatTheirFormHolds) {
  const auto numbers = test::random_floats(6 + 12, 3);  // with the moments of Adam
  for (const RowForm form : {RowForm::kFloat32, RowForm::kBFloat16, RowForm::kInt8}) {
    std::string out;
    encode_row(form, 6, row_of(-42, numbers).data(), &out);
    EXPECT_EQ(out.size(), served_row_bytes(form, 6));
    int64_t key = 0;
    const auto found = decoded(form, out, 6, &key);
    EXPECT_EQ(key, -42);
    float most = 0;
    for (int j = 0; j < 6; ++j) most = std::max(most, std::fabs(numbers[static_cast<size_t>(j)]));
    for (size_t j = 0; j < 6; ++j) {
      const float error = std::fabs(found[j] - numbers[j]);
      const float bound = form == RowForm::kFloat32    ? 0
                          : form == RowForm::kBFloat16 ? std::fabs(numbers[j]) / 256
                                                       : most / 254 * 1.0001f;
      EXPECT_LE(error, bound) << j;
    }
  }
}

TEST(LinkRows, HoldEdges) {
  const float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  int64_t key = 0;
  std::string out;
  encode_row(RowForm::kInt8, 3, row_of(1, {0, -0.0f, 0}).data(), &out);
  EXPECT_EQ(decoded(RowForm::kInt8, out, 3, &key), (std::vector<float>{0, 0, 0}));
  out.clear();
  encode_row(RowForm::kBFloat16, 4, row_of(1, {infinity, -infinity, most, 1e-40f}).data(), &out);
  const auto edges = decoded(RowForm::kBFloat16, out, 4, &key);
  EXPECT_EQ(edges[0], infinity);
  EXPECT_EQ(edges[1], -infinity);
  EXPECT_EQ(edges[2], infinity);  // the nearest number that bfloat16 has
  EXPECT_NEAR(edges[3], 1e-40f, 1e-40f);
  out.clear();
  encode_row(RowForm::kBFloat16, 1, row_of(1, {std::nanf("")}).data(), &out);
  EXPECT_TRUE(std::isnan(decoded(RowForm::kBFloat16, out, 1, &key)[0]));
  EXPECT_THROW(encode_row(RowForm::kInt8, 2, row_of(5, {1, infinity}).data(), &out), Error);
  out.clear();
  encode_row(RowForm::kInt8, 2, row_of(1, {most, -most}).data(), &out);
  EXPECT_TRUE(std::isfinite(decoded(RowForm::kInt8, out, 2, &key)[0]));
  EXPECT_THROW(served_row_bytes(static_cast<RowForm>(9), 2), Error);
}

}  // namespace
}  // namespace anabranch::sparse
