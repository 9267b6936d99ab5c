// Streams of batches with several threads at both ends; Python tests look at what is read.
#include "data/dataset.h"
#include "data/gather.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/error.h"
#include "data/number.h"

namespace anabranch::data {
namespace {

class DataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("anabranch_data_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Lines "1 n  k  n+1 .. n+k": an id, and a list of one to three.
  std::string file(const std::string& name, int64_t first, int64_t last) {
    const std::string path = folder_ / name;
    std::ofstream out(path);
    for (int64_t n = first; n < last; ++n) {
      out << "1 " << n << ' ' << 1 + n % 3;
      for (int64_t k = 0; k <= n % 3; ++k) out << ' ' << n + 1 + k;
      out << '\n';
    }
    return path;
  }

  Settings settings(std::vector<std::string> files, int threads) {
    Settings s;
    s.schema.slots = {{"n", DType::kInt64, true, Shape{1}}, {"list", DType::kInt64}};
    s.files = std::move(files);
    s.threads = threads;
    s.batch_size = 64;
    return s;
  }

  std::filesystem::path folder_;
};

// The numbers of a batch; checks that the lists belong to them.
std::vector<int64_t> numbers(const Batch& batch) {
  const int64_t* n = batch.columns[0].data<int64_t>();
  const int64_t* list = batch.columns[1].data<int64_t>();
  const auto& offsets = batch.columns[1].lod()[0];
  EXPECT_EQ(static_cast<int64_t>(offsets.size()), batch.rows + 1);
  for (int64_t i = 0; i < batch.rows; ++i) {
    const int64_t begin = offsets[static_cast<size_t>(i)], end = offsets[static_cast<size_t>(i) + 1];
    EXPECT_EQ(end - begin, 1 + n[i] % 3);
    for (int64_t k = begin; k < end; ++k) EXPECT_EQ(list[k], n[i] + 1 + k - begin);
  }
  return {n, n + batch.rows};
}

TEST_F(DataTest, OrderDoesNotDependOnThreads) {
  const std::vector<std::string> files = {file("a", 0, 30000), file("b", 30000, 30001), file("c", 30001, 50000)};
  for (const int threads : {1, 2, 7}) {
    Dataset set(settings(files, threads));
    const auto stream = set.open({});
    Batch batch;
    int64_t expected = 0, index = 0;
    while (stream->next(&batch)) {
      EXPECT_EQ(batch.index, index++);
      EXPECT_TRUE(RowGather::scratch(&batch).blocks.empty()) << "a batch that was made keeps no block";
      for (const int64_t n : numbers(batch)) EXPECT_EQ(n, expected++);
    }
    EXPECT_EQ(expected, 50000);
    EXPECT_EQ(stream->statistics().rows, 50000);
    EXPECT_DOUBLE_EQ(stream->progress(), 1);
  }
}

TEST_F(DataTest, SeveralConsumersGetEveryRowOnce) {
  const std::vector<std::string> files = {file("a", 0, 30000), file("b", 30000, 60000)};
  for (const bool in_memory : {false, true}) {
    for (const bool ordered : {false, true}) {
      Settings s = settings(files, 3);
      s.in_memory = in_memory;
      Dataset set(s);
      if (in_memory) set.load();
      if (in_memory) set.local_shuffle();
      const auto stream = set.open({.ordered = ordered});
      std::vector<std::atomic<int>> seen(60000);
      std::vector<std::thread> consumers;
      for (int c = 0; c < 3; ++c) {
        consumers.emplace_back([&] {
          Batch batch;
          while (stream->next(&batch)) {
            for (const int64_t n : numbers(batch)) ++seen[static_cast<size_t>(n)];
          }
        });
      }
      for (auto& consumer : consumers) consumer.join();
      EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 1; }));
    }
  }
}

TEST_F(DataTest, CloseWakesAllWaitingThreads) {
  Settings s = settings({file("a", 0, 10)}, 2);
  s.pipe_command = "sleep 100";
  Dataset set(s);
  const auto stream = set.open({});
  std::thread consumer([&] {
    Batch batch;
    EXPECT_FALSE(stream->next(&batch));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  stream->close();
  consumer.join();
}

TEST_F(DataTest, TheFirstErrorIsThrownAgainAndAgain) {
  const std::string path = file("a", 0, 20000);
  std::ofstream(path, std::ios::app) << "1 5 x\n";
  for (const int threads : {1, 4}) {
    Dataset set(settings({path, file("b", 20000, 40000)}, threads));
    const auto stream = set.open({});
    Batch batch;
    int64_t rows = 0;
    const auto read_on = [&] {
      while (stream->next(&batch)) rows += batch.rows;
    };
    EXPECT_THROW(read_on(), Error);
    EXPECT_EQ(rows, 20000 / 64 * 64);
    EXPECT_THROW(read_on(), Error);
  }
}

TEST_F(DataTest, ALoopThatIsInterruptedGoesOnWithoutALoss) {
  Settings s = settings({file("a", 0, 1000), file("b", 1000, 1010)}, 1);
  s.pipe_command = "sleep 0.3; cat";
  s.batch_size = 1005;  // the first block is there when the second one is waited for
  struct Interrupt {};
  int calls = 0;
  Dataset set(s);
  const auto stream = set.open({.ordered = true, .threads = 1, .idle = [&] {
                                  if (++calls % 2 == 0) throw Interrupt();
                                }});
  std::vector<int64_t> all;
  Batch batch;
  int interrupted = 0;
  for (bool more = true; more;) {
    try {
      more = stream->next(&batch);
      if (more) {
        for (const int64_t n : numbers(batch)) all.push_back(n);
      }
    } catch (const Interrupt&) {
      ++interrupted;
    }
  }
  EXPECT_GT(interrupted, 1);
  ASSERT_EQ(all.size(), 1010u);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int64_t>(i));
}

// A dense slot of unknown extent: what does not fit shows when a batch is made.
TEST_F(DataTest, AnErrorOfABatchEndsThePass) {
  const std::string path = folder_ / "uneven";
  {
    std::ofstream out(path);
    for (int n = 0; n < 40; ++n) out << (n == 9 ? "1 7\n" : "2 7 8\n");
  }
  for (const bool in_memory : {false, true}) {
    Settings s = settings({path}, 2);
    s.schema.slots = {{"n", DType::kInt64, true, Shape{kUnknown}}};
    s.batch_size = 4;
    s.in_memory = in_memory;
    Dataset set(s);
    if (in_memory) set.load();
    const auto stream = set.open({.ordered = true});
    Batch batch;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(stream->next(&batch));
    for (int i = 0; i < 3; ++i) EXPECT_THROW(stream->next(&batch), Error) << in_memory;
  }
}

TEST_F(DataTest, LoadingGivesOneErrorAndOneOrderOfBadLines) {
  std::vector<std::string> files;
  for (int f = 0; f < 6; ++f) {
    files.push_back(file("part" + std::to_string(f), 0, f == 0 ? 30000 : 300));
    std::ofstream(files.back(), std::ios::app) << "bad line " << f << "\n";
  }
  const auto load = [&](int threads, bool raise) {
    Settings s = settings(files, threads);
    s.in_memory = true;
    s.bad_rows = {raise ? BadRowPolicy::Kind::kRaise : BadRowPolicy::Kind::kQuarantine, -1, folder_ / "refused"};
    Dataset set(s);
    try {
      set.load();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    std::ifstream refused(folder_ / "refused");
    return std::string(std::istreambuf_iterator<char>(refused), {});
  };
  const std::string error = load(1, true), order = load(1, false);
  EXPECT_NE(error.find("part0:30001"), std::string::npos) << error;
  EXPECT_NE(order.find("bad line 5"), std::string::npos);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(load(4, true), error);
    EXPECT_EQ(load(4, false), order);
  }
  files[3] += ".not";
  files[5] += ".not";
  std::ofstream(files[0]) << "1 0 1 1\n";
  std::ofstream(files[1]) << "1 0 1 1\n";
  std::ofstream(files[2]) << "1 0 1 1\n";
  const std::string missing = load(1, true);
  EXPECT_NE(missing.find("part3.not"), std::string::npos) << missing;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(load(4, true), missing);
}

TEST_F(DataTest, ACommandOverANamedPipeCanBeStopped) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Settings s = settings({pipe}, 2);
  s.pipe_command = "cat -";
  Dataset set(s);
  auto stream = set.open({.ordered = true});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  stream->close();
  Batch batch;
  EXPECT_FALSE(stream->next(&batch));
  std::thread writer([&] { std::ofstream(pipe) << "1 0 1 1\n1 1 2 2 3\n"; });
  stream = set.open({.ordered = true});
  ASSERT_TRUE(stream->next(&batch));
  writer.join();
  EXPECT_EQ(numbers(batch), (std::vector<int64_t>{0, 1}));
}

TEST_F(DataTest, DataInMemoryMayBeReadDuringLoading) {
  Settings s = settings({file("a", 0, 20000)}, 2);
  s.in_memory = true;
  Dataset set(s);
  set.load();
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      EXPECT_EQ(set.records(), 20000);
      EXPECT_GT(set.memory_bytes(), 0);
      EXPECT_EQ(set.load_statistics().rows, 20000);
    }
  });
  for (int i = 0; i < 10; ++i) {
    set.load();
    set.local_shuffle();
  }
  done = true;
  other.join();
}

TEST_F(DataTest, NamesAndCommandsHaveNoZeroByte) {
  Settings s = settings({file("a", 0, 10)}, 1);
  s.pipe_command = std::string("cat\0x", 5);
  EXPECT_THROW(Dataset(s).open({}), Error);
  s.pipe_command = "cat";
  s.files[0] += std::string("\0x", 2);
  EXPECT_THROW(Dataset(s).open({}), Error);
}

TEST_F(DataTest, AStreamMayBeLeftAtAnyTime) {
  const std::string path = file("a", 0, 40000);
  for (int i = 0; i < 20; ++i) {
    Dataset set(settings({path, path, path}, 4));
    const auto stream = set.open({.ordered = i % 2 == 0});
    Batch batch;
    for (int k = 0; k < i; ++k) EXPECT_TRUE(stream->next(&batch));
  }
}

TEST_F(DataTest, TensorsKeptByTheCallerAreNotWrittenTo) {
  Dataset set(settings({file("a", 0, 256)}, 1));
  const auto stream = set.open({});
  Batch batch;
  ASSERT_TRUE(stream->next(&batch));
  const LoDRef lod = batch.columns[1].lod_ref();
  const LoD before = *lod;
  ASSERT_TRUE(stream->next(&batch));
  EXPECT_EQ(*lod, before);
}

TEST(Number, FastAndCarefulAgree) {
  for (const std::string text : {"0", "7", "99999999", "100000000", "9999999999999999", "1234567.1234567", "0.1",
                                 "-3.25", "16777217", "8388608.5", "-0.0", "9999999.9999999"}) {
    const std::string padded = text + "\n" + std::string(kTextPadding, '\0');
    float fast = 0, careful = 0;
    if (fast_float(padded.data(), &fast)) {
      ASSERT_EQ(careful_float(text, &careful), Spelling::kGood);
      EXPECT_EQ(std::bit_cast<uint32_t>(fast), std::bit_cast<uint32_t>(careful)) << text;
    }
    uint64_t fast_value = 0, careful_value = 0;
    const char* end = fast_id(padded.data(), &fast_value);
    if (end && *end == '\n') {
      ASSERT_EQ(careful_id(text, &careful_value), Spelling::kGood);
      EXPECT_EQ(fast_value, careful_value) << text;
    }
  }
}

}  // namespace
}  // namespace anabranch::data
