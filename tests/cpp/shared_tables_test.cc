// Tables whose rows several processes have in memory once: they read like tables that have their own memory.
#include "sparse/shared_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "base/error.h"
#include "io/mapped_file.h"
#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

namespace fs = std::filesystem;
using test::Keys;

std::string fresh_folder(const std::string& name) {
  const std::string path = test::scratch_path(name);
  fs::remove_all(path);
  return path;
}

std::vector<std::string> images_in(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".table") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A table that is trained, and its chain.
struct Trained {
  explicit Trained(std::string named, int64_t width = 3, int64_t expire_after = 0) : name(std::move(named)) {
    TableOptions o = test::options(width, RowRule::kAdam);
    o.expire_after = static_cast<int32_t>(expire_after);
    table = std::make_shared<GrowableTable>("t", o);
  }
  void train(const Keys& keys, uint64_t seed) {
    const auto width = static_cast<size_t>(table->options().width);
    test::pull(*table, keys);
    test::update(*table, keys, test::random_floats(keys.size() * width, seed), RowRule::kAdam);
  }
  // The first link has all rows.
  void write() {
    const bool whole = paths.empty();
    const std::string path = test::scratch_path(fmt::format("{}{}", name, place.number));
    GrowableTable::Cut cut(table, 1000, whole ? CutKind::kBoth : CutKind::kChanges);
    io::AtomicFile file(path);
    const LinkSums sums = write_links(&cut, place, whole ? &file : nullptr, whole ? nullptr : &file);
    file.commit();
    cut.end(whole ? sums.whole : sums.changes);
    place.previous = place.number++;
    place.previous_sums = sums;
    paths.push_back(path);
  }
  TableChain chain() const { return TableChain(paths); }
  TableChain changes() const {
    return TableChain({paths.back()}, &TableChain({paths.begin(), paths.end() - 1}).last());
  }

  const std::string name;
  std::shared_ptr<GrowableTable> table;
  LinkPlace place;
  std::vector<std::string> paths;
};

Keys first_keys(int64_t n) {
  Keys keys(static_cast<size_t>(n));
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
  return keys;
}

void apply(GrowableTable& table, const TableChain& changes) {
  table.set_layer(table.layer_of(changes));
  table.fold_layer();
  table.set_layer(nullptr);
}

TEST(SharedTables, ReadLikeTheTableThatWroteThem) {
  Trained run("shared", 3, /*expire_after=*/3);
  const Keys all = first_keys(2000);
  SharedTables one(fresh_folder("shared_folder")), other(test::scratch_path("shared_folder"));
  std::shared_ptr<GrowableTable> followed;
  int64_t gone = 0, renewed = 0;
  for (uint64_t n = 0; n < 12; ++n) {
    run.train(test::random_keys(n == 0 ? 1500 : 60, n + 1, 2000), n + 1);
    run.write();
    const auto expected = test::pull(*run.table, all, /*train=*/false);
    if (!followed) {
      followed = one.open(run.chain());
    } else {
      const TableChain changes = run.changes();
      gone += changes.last().gone();
      followed->set_layer(followed->layer_of(changes));
      EXPECT_EQ(test::pull(*followed, all, /*train=*/false), expected);
      followed->fold_layer();
      EXPECT_EQ(test::pull(*followed, all, /*train=*/false), expected);
      followed->set_layer(nullptr);
    }
    ASSERT_TRUE(followed->is_image());
    EXPECT_EQ(test::pull(*followed, all, /*train=*/false), expected);
    EXPECT_EQ(test::pull(*followed, all, /*train=*/true), expected);  // lookups make no rows
    EXPECT_EQ(followed->keys(), run.table->keys());
    EXPECT_EQ(followed->stats().rows, run.table->stats().rows);
    EXPECT_EQ(test::pull(*other.open(run.chain()), all, /*train=*/false), expected);
    while (const auto image = one.renewed(*followed, run.chain().last().checksum(), /*makes=*/true)) {
      followed->exchange_images(image.get());
      EXPECT_EQ(test::pull(*followed, all, /*train=*/false), expected);
      EXPECT_EQ(followed->keys(), run.table->keys());
      ++renewed;
    }
  }
  EXPECT_GT(gone, 100);
  EXPECT_GT(renewed, 32);
  EXPECT_EQ(one.problem() + other.problem(), "");
}

TEST(SharedTables, HoldEdgesOfTables) {
  for (const int64_t width : {1, 16, 33}) {
    for (const int64_t rows : {0, 1, 5, 20000}) {
      Trained run("edges", width);
      if (rows) run.train(first_keys(rows), 1);
      run.write();
      SharedTables shared(fresh_folder("edges_folder"));
      const auto table = shared.open(run.chain());
      EXPECT_EQ(table->keys(), run.table->keys());
      const Keys asked = first_keys(rows + 10);
      EXPECT_EQ(test::pull(*table, asked, false), test::pull(*run.table, asked, false)) << width << " " << rows;
    }
  }
}

TEST(SharedTables, AnImageIsReadAfterItWasRemovedOrReplaced) {
  Trained run("removed");
  run.train(first_keys(1000), 1);
  run.write();
  const std::string folder = fresh_folder("removed_folder");
  SharedTables shared(folder);
  const auto table = shared.open(run.chain());
  const auto expected = test::pull(*run.table, first_keys(1000), false);
  const std::string image = images_in(folder).at(0);
  fs::remove(image);
  EXPECT_EQ(test::pull(*table, first_keys(1000), false), expected);
  const auto again = shared.open(run.chain());
  EXPECT_EQ(images_in(folder).size(), 16);
  std::ofstream(image + ".new") << "another file";
  fs::rename(image + ".new", image);
  EXPECT_EQ(test::pull(*again, first_keys(1000), false), expected);
}

TEST(SharedTables, ADamagedImageIsMadeAgain) {
  Trained run("damaged");
  run.train(first_keys(1000), 1);
  run.write();
  const std::string folder = fresh_folder("damaged_folder");
  SharedTables shared(folder);
  const uint64_t link = run.chain().last().checksum();
  const auto expected = test::pull(*shared.open(run.chain()), first_keys(1000), false);
  const std::string image = images_in(folder).at(0);
  std::ifstream file(image, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const auto refused = [&](const std::string& bytes) {
    fs::remove(image);
    std::ofstream(image, std::ios::binary) << bytes;
    try {
      GrowableTable::for_images("t", 3)->map_image(0, link, image);
    } catch (const Error& e) {
      return e.kind() == ErrorKind::kInvalidArgument && std::string(e.what()).find(image) != std::string::npos;
    }
    return false;
  };
  std::mt19937_64 draw(3);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    char& hit = bytes[i < 100 ? draw() % 600 : draw() % bytes.size()];
    hit = static_cast<char>(hit ^ 1 << draw() % 8);
    EXPECT_TRUE(refused(bytes));
    EXPECT_TRUE(refused(whole.substr(0, draw() % whole.size())));
  }
  EXPECT_EQ(test::pull(*shared.open(run.chain()), first_keys(1000), false), expected);
  EXPECT_EQ(shared.problem(), "");
  const auto again = GrowableTable::for_images("t", 3), wide = GrowableTable::for_images("t", 4);
  EXPECT_NO_THROW(again->map_image(0, link, image));
  EXPECT_THROW(again->map_image(0, link + 1, image), Error);
  EXPECT_THROW(again->map_image(1, link, image), Error);
  EXPECT_THROW(wide->map_image(0, link, image), Error);
}

TEST(SharedTables, OneMakesAnImageAndOthersTakeIt) {
  Trained run("renewed");
  const Keys all = first_keys(4000);
  run.train(all, 1);
  run.write();
  const std::string folder = fresh_folder("renewed_folder");
  SharedTables shared(folder), second(folder);
  const auto one = shared.open(run.chain()), two = second.open(run.chain());
  run.train(first_keys(20), 2);
  run.write();
  for (const auto& table : {one, two}) apply(*table, run.changes());
  EXPECT_EQ(shared.renewed(*one, run.chain().last().checksum(), true), nullptr);  // too few rows have changed
  run.train(first_keys(300), 3);
  run.write();
  for (const auto& table : {one, two}) apply(*table, run.changes());
  const uint64_t link = run.chain().last().checksum();
  EXPECT_EQ(second.renewed(*two, link, /*makes=*/false), nullptr);
  const auto expected = test::pull(*run.table, all, false);
  for (size_t done = 1; const auto made = shared.renewed(*one, link, /*makes=*/true); ++done) {
    one->exchange_images(made.get());
    EXPECT_EQ(test::pull(*one, all, false), expected);
    EXPECT_LE(images_in(folder).size(), 16 + done);
    const auto found = second.renewed(*two, link, /*makes=*/false);
    ASSERT_NE(found, nullptr);
    two->exchange_images(found.get());
    EXPECT_EQ(test::pull(*two, all, false), expected);
  }
  for (size_t s = 0; s < 16; ++s) EXPECT_EQ(one->own_rows(s) + two->own_rows(s), 0);
  run.train(first_keys(300), 4);
  run.write();
  for (const auto& table : {one, two}) apply(*table, run.changes());
  ASSERT_NE(shared.renewed(*one, run.chain().last().checksum(), true), nullptr);
  EXPECT_EQ(images_in(folder).size(), 17);     // the first ones are gone
  const auto late = second.open(run.chain());  // of images of two links
  EXPECT_EQ(test::pull(*late, all, false), test::pull(*run.table, all, false));
}

TEST(SharedTables, ImagesThatNothingUsesAreRemoved) {
  Trained run("unused");
  run.train(first_keys(100), 1);
  run.write();
  const std::string folder = fresh_folder("unused_folder");
  SharedTables shared(folder);
  const auto used = shared.open(run.chain());
  const std::string image = images_in(folder).at(0);
  for (const std::string name : {"unused_a", "unused_b"}) {
    Trained other(name);
    other.train(first_keys(100), name.back());
    other.write();
    shared.open(other.chain());
  }
  EXPECT_THAT(images_in(folder), testing::Contains(image));
  EXPECT_EQ(images_in(folder).size(), 32);  // and those of the last one
  EXPECT_FALSE(io::MappedFile(image).bytes().empty());
}

TEST(SharedTables, ATableThatCannotBeSharedHasItsOwnMemory) {
  Trained run("alone");
  run.train(first_keys(100), 1);
  run.write();
  const std::string folder = fresh_folder("alone_folder");
  SharedTables shared(folder);
  fs::remove_all(folder);
  const auto table = shared.open(run.chain());
  EXPECT_FALSE(table->is_image());
  EXPECT_EQ(test::pull(*table, first_keys(100), false), test::pull(*run.table, first_keys(100), false));
  EXPECT_THAT(shared.problem(), testing::AllOf(testing::HasSubstr("table t"), testing::HasSubstr(folder)));
  EXPECT_EQ(shared.renewed(*table, 1, true), nullptr);
  fs::create_directory(folder);
  EXPECT_TRUE(shared.open(run.chain())->is_image());
  EXPECT_EQ(shared.problem(), "");
  EXPECT_THROW(SharedTables(folder + "/no/such"), Error);
}

TEST(SharedTables, AProcessMayBeKilledWhileItMakesImages) {
  Trained run("killed");
  run.train(first_keys(5000), 1);
  run.write();
  const std::string folder = fresh_folder("killed_folder");
  const auto expected = test::pull(*run.table, first_keys(5000), false);
  for (int i = 0; i < 15; ++i) {
    fs::remove_all(folder);
    fs::create_directory(folder);
    const pid_t child = fork();
    if (child == 0) {
      SharedTables(folder).open(run.chain());
      _exit(0);
    }
    usleep(static_cast<useconds_t>(i * i * 500));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    SharedTables shared(folder);
    EXPECT_EQ(test::pull(*shared.open(run.chain()), first_keys(5000), false), expected);
    EXPECT_EQ(shared.problem(), "");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 17);  // and the lock: no part of a file is left
  }
}

TEST(SharedTables, AreNotChanged) {
  Trained run("unchanged");
  run.train(first_keys(100), 1);
  run.write();
  SharedTables shared(fresh_folder("unchanged_folder"));
  const auto table = shared.open(run.chain());
  const int64_t key = 1;
  io::FileSet files;
  EXPECT_THROW(table->remove(&key, 1), Error);
  EXPECT_THROW(table->add_rows("", 0), Error);
  EXPECT_THROW(table->record_since(1), Error);
  EXPECT_THROW(GrowableTable::Cut(table, 1000), Error);
  EXPECT_THROW(table->save(test::scratch_path("unchanged_save"), false, &files), Error);
  files.drop();
  table->load(run.chain());  // its own memory again
  EXPECT_FALSE(table->is_image());
  EXPECT_NO_THROW(table->remove(&key, 1));
}

TEST(SharedTables, AreFoldedAndRenewedWhileOthersRead) {
  Trained run("reads", 8);
  const Keys keys = first_keys(20000);
  run.train(keys, 1);
  run.write();
  SharedTables shared(fresh_folder("reads_folder"));
  const auto table = shared.open(run.chain());
  run.train(first_keys(10000), 2);
  run.write();
  table->set_layer(table->layer_of(run.changes()));
  const auto expected = test::pull(*run.table, keys, false);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0}, reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!over) {
        wrong += test::pull(*table, keys, false) != expected;
        ++reads;
      }
    });
  }
  const auto wait = [&] {
    for (const int then = reads; reads < then + 2;) std::this_thread::yield();
  };
  wait();
  table->fold_layer();
  wait();
  over = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  table->set_layer(nullptr);
  EXPECT_EQ(test::pull(*table, keys, false), expected);
}

}  // namespace
}  // namespace anabranch::sparse
