#include "io/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "io/tensor_stream.h"

namespace anabranch::io {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "files_test_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Files() override { fs::remove_all(folder_); }

  void put(const std::string& name, float value) {
    Tensor& t = scope_->var(name)->as<Tensor>();
    t.resize(Shape{2}, DType::kFloat32);
    t.mutable_data<float>()[0] = t.mutable_data<float>()[1] = value;
  }
  void save(const std::vector<std::string>& names, const std::string& folder, const std::string& filename) {
    FileSet files;
    save_vars(*scope_, names, folder, filename, &files);
    files.commit();
  }
  static void write(const std::string& path, std::string_view data) {
    FileSet files;
    files.add(path).write(data);
    files.commit();
  }
  float get(const std::string& name) { return scope_->find_var(name)->tensor().data<float>()[0]; }
  std::vector<std::string> listing() {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder_).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  template <class Fn> std::string error_of(Fn&& fn) {
    try {
      fn();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  std::string folder_;
  std::shared_ptr<Scope> scope_ = Scope::make();
};

TEST_F(Files, OneFileAVariable) {
  put("w", 1);
  put("sub/b", 2);
  save({"w", "sub/b"}, folder_, "");
  EXPECT_THAT(listing(), ElementsAre("sub/b", "w"));
  std::string expected;
  write_tensor(scope_->find_var("w")->tensor(), &expected);
  EXPECT_EQ(read_file(folder_ + "/w"), expected);
  put("w", 0);
  put("sub/b", 0);
  load_vars(*scope_, {"w", "sub/b"}, folder_, "");
  EXPECT_EQ(get("w"), 1);
  EXPECT_EQ(get("sub/b"), 2);
}

TEST_F(Files, AllInOneFile) {
  put("a", 1);
  put("b", 2);
  save({"a", "b"}, folder_ + "/deep/er", "params");
  EXPECT_THAT(listing(), ElementsAre("deep/er/params"));
  load_vars(*scope_, {"b", "a"}, folder_ + "/deep/er", "params");  // the order is the caller's
  EXPECT_EQ(get("b"), 1);
  EXPECT_EQ(get("a"), 2);
}

TEST_F(Files, ACombinedFileMustEndWithItsLastVariable) {
  put("a", 1);
  put("b", 2);
  save({"a", "b"}, folder_, "params");
  EXPECT_THAT(error_of([&] { load_vars(*scope_, {"a"}, folder_, "params"); }), HasSubstr("extra bytes"));
  const std::string message = error_of([&] { load_vars(*scope_, {"a", "b", "c"}, folder_, "params"); });
  EXPECT_THAT(message, HasSubstr("too few bytes"));
  EXPECT_THAT(message, HasSubstr("variable c in file " + folder_ + "/params"));
  EXPECT_THAT(message, HasSubstr("starts at byte "));
}

TEST_F(Files, NothingIsLoadedUnlessEverythingCanBe) {
  put("a", 1);
  put("b", 2);
  save({"a", "b"}, folder_, "");
  put("a", 7);
  fs::resize_file(folder_ + "/b", 20);
  EXPECT_THAT(error_of([&] { load_vars(*scope_, {"a", "b"}, folder_, ""); }), HasSubstr("variable b in file"));
  EXPECT_EQ(get("a"), 7);
  std::ofstream(folder_ + "/a", std::ios::app) << "xyz";
  EXPECT_THAT(error_of([&] { load_vars(*scope_, {"a"}, folder_, ""); }), HasSubstr("3 extra bytes"));
}

TEST_F(Files, NothingIsSavedUnlessEverythingCanBe) {
  put("a", 1);
  save({"a"}, folder_, "");
  const std::string before = read_file(folder_ + "/a");
  put("a", 5);
  scope_->var("unwritten");
  EXPECT_THAT(error_of([&] { save({"a", "unwritten"}, folder_, ""); }), HasSubstr("startup"));
  EXPECT_EQ(read_file(folder_ + "/a"), before);
  EXPECT_THAT(listing(), ElementsAre("a"));
  // The second variable's place is taken by a folder: found out only when the files are in the making.
  fs::create_directory(folder_ + "/b");
  std::ofstream(folder_ + "/b/x") << "x";
  put("b", 1);
  EXPECT_NE(error_of([&] { save({"b"}, folder_, ""); }), "");
  EXPECT_THAT(listing(), ElementsAre("a", "b/x"));
}

TEST_F(Files, NamesStayInsideTheFolder) {
  for (const char* name : {"../w", "/tmp/w", "a/../../w", "a/./w", "a/", "..", "."}) {
    put(name, 1);
    EXPECT_THAT(error_of([&] { save({name}, folder_, ""); }), HasSubstr("leads out")) << name;
    EXPECT_THAT(error_of([&] { load_vars(*scope_, {name}, folder_, ""); }), HasSubstr("leads out")) << name;
  }
}

TEST_F(Files, LinksAreNotFollowedOutOfTheFolder) {
  const std::string outside = folder_ + "/outside", inside = folder_ + "/inside";
  fs::create_directory(outside);
  fs::create_directory(inside);
  fs::create_directory_symlink(outside, inside + "/sub");
  put("sub/w", 1);
  EXPECT_THAT(error_of([&] { save({"sub/w"}, inside, ""); }), HasSubstr("outside"));
  // A link instead of the file itself is replaced; its target stays.
  std::ofstream(outside + "/precious") << "precious";
  fs::create_symlink(outside + "/precious", inside + "/w");
  put("w", 1);
  save({"w"}, inside, "");
  EXPECT_EQ(read_file(outside + "/precious"), "precious");
  EXPECT_FALSE(fs::is_symlink(inside + "/w"));
}

TEST_F(Files, SparseRowsHaveTheirOwnFiles) {
  SelectedRows& rows = scope_->var("s")->as<SelectedRows>();
  rows.rows = {3};
  rows.height = 4;
  rows.value.resize(Shape{1, 2}, DType::kFloat32);
  std::memset(rows.value.mutable_raw(), 0, rows.value.bytes());
  save({"s"}, folder_, "");
  rows.rows = {0};
  load_vars(*scope_, {"s"}, folder_, "");
  EXPECT_THAT(scope_->find_var("s")->rows().rows, ElementsAre(3));
  EXPECT_THAT(error_of([&] { save({"s"}, folder_, "all"); }), HasSubstr("sparse rows"));
}

TEST_F(Files, LoadingWritesIntoTheMemoryThatIsThere) {
  put("w", 1);
  save({"w"}, folder_, "");
  const Tensor shared = scope_->find_var("w")->tensor();
  const uint64_t version = scope_->find_var("w")->version();
  put("w", 3);
  load_vars(*scope_, {"w"}, folder_, "");
  EXPECT_EQ(shared.data<float>()[0], 1);
  EXPECT_GT(scope_->find_var("w")->version(), version);
}

TEST_F(Files, AKilledWriterLeavesTheOldFile) {
  const std::string path = folder_ + "/w";
  write(path, "old");
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  write(path, "new");
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_NE(before.st_ino, after.st_ino);  // another file took its place; the old one was never opened for writing
  EXPECT_EQ(read_file(path), "new");
  EXPECT_THAT(listing(), ElementsAre("w"));
}

TEST_F(Files, ASetIsMovedIntoPlaceTogetherOrNotAtAll) {
  for (const char* name : {"a", "b", "c"}) write(folder_ + "/" + name, "old");
  fs::create_symlink("a", folder_ + "/link");
  fs::create_directory(folder_ + "/z");
  const auto commit = [&](const std::vector<std::string>& names) {
    FileSet files;
    for (const auto& name : names) files.add(folder_ + "/" + name).write("new");
    files.commit();
  };
  EXPECT_THAT(error_of([&] { commit({"a", "b", "fresh", "link", "z"}); }), HasSubstr("cannot replace"));
  for (const char* name : {"a", "b", "link"}) EXPECT_EQ(read_file(folder_ + "/" + name), "old") << name;
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link"));
  EXPECT_THAT(listing(), ElementsAre("a", "b", "c", "link"));
  EXPECT_THAT(error_of([&] { commit({"a", "a"}); }), HasSubstr("two parts"));
  commit({"a", "b", "fresh"});
  for (const char* name : {"a", "b", "fresh"}) EXPECT_EQ(read_file(folder_ + "/" + name), "new") << name;
  EXPECT_THAT(listing(), ElementsAre("a", "b", "c", "fresh", "link"));
}

TEST_F(Files, ASetThatFailsHalfWayGivesTheOldFilesBack) {
  write(folder_ + "/a", "old");
  FileSet files;
  files.add(folder_ + "/a").write("new");
  files.add(folder_ + "/fresh").write("new");
  const auto before = listing();
  files.add(folder_ + "/c").write("new");
  for (const auto& name : listing()) {  // the temporary file of the last one is removed
    if (std::find(before.begin(), before.end(), name) == before.end()) fs::remove(folder_ + "/" + name);
  }
  EXPECT_THAT(error_of([&] { files.commit(); }), HasSubstr("cannot replace"));
  EXPECT_EQ(read_file(folder_ + "/a"), "old");
  EXPECT_FALSE(fs::exists(folder_ + "/fresh"));
}

TEST_F(Files, FilesOfAKilledProcessAreRemoved) {
  const pid_t child = fork();
  if (child == 0) {
    FileSet files;
    files.add(folder_ + "/w").write("half");
    _exit(0);  // without destructors
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(listing().size(), 1u);
  FileSet mine;
  mine.add(folder_ + "/v").write("kept while it is written");
  EXPECT_EQ(listing().size(), 1u);
  write(folder_ + "/w", "whole");
  EXPECT_EQ(listing().size(), 2u);
  mine.commit();
  EXPECT_THAT(listing(), ElementsAre("v", "w"));
}

TEST_F(Files, LinksDoNotLeadOutOnLoading) {
  put("w", 1);
  save({"w"}, folder_ + "/outside", "");
  fs::create_directory(folder_ + "/in");
  fs::create_symlink(folder_ + "/outside/w", folder_ + "/in/w");
  EXPECT_THAT(error_of([&] { load_vars(*scope_, {"w"}, folder_ + "/in", ""); }), HasSubstr("outside"));
  EXPECT_THAT(error_of([&] { load_vars(*scope_, {"w"}, folder_ + "/in", "w"); }), HasSubstr("outside"));
  EXPECT_THAT(error_of([&] { read_file_of(folder_ + "/in", folder_ + "/in/w"); }), HasSubstr("outside"));
  fs::create_symlink(folder_ + "/outside", folder_ + "/too");  // the folder that was named may be a link itself
  load_vars(*scope_, {"w"}, folder_ + "/too", "");
}

TEST_F(Files, OnlyRegularFilesAreRead) {
  EXPECT_THAT(error_of([&] { read_file(folder_ + "/none"); }), HasSubstr("NotFound"));
  EXPECT_THAT(error_of([&] { read_file(folder_); }), HasSubstr("not a regular file"));
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { read_file(pipe); }), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace anabranch::io
