#include "engine/version_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/files.h"
#include "io/regular_file.h"
#include "sparse/table_link.h"

namespace anabranch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kFormat = 1;
constexpr const char *kPrefix = "checkpoint-", *kStatus = "status.json", *kPin = "pinned.json", *kChanges = ".changes";

// fn(JSON of a file); InvalidArgument if it is not JSON, or not as fn expects it.
template <class Fn> auto use_json(const std::string& path, const std::string& text, Fn&& fn) {
  try {
    return fn(Json::parse(text));
  } catch (const Json::exception& e) {
    AB_THROW(InvalidArgument, "{}: not readable: {}", path, e.what());
  }
}

uint64_t crc_of(std::string_view bytes, uint64_t before = 0) {
  return crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

// The status ends with the checksum of its text without it.
void check_text(const std::string& path, const std::string& text, const Json& status) {
  if (!status.contains("check")) return;
  const size_t end = text.rfind(", \"check\": ");
  const uint64_t found = end == std::string::npos ? 0 : crc_of(text.substr(0, end) + "}");
  const auto expected = status.at("check").get<uint64_t>();
  AB_CHECK(found == expected, InvalidArgument, "{}: its checksum must be {}, got {}", path, found, expected);
}

// The checksum at the end of a link, as a status records it.
std::string sum_at_end(const std::string& path, uint64_t size) {
  sparse::LinkFoot foot;
  std::ifstream file(path, std::ios::binary);
  if (size < sizeof(foot) || !file.seekg(static_cast<std::streamoff>(size - sizeof(foot))) ||
      !file.read(reinterpret_cast<char*>(&foot), sizeof(foot))) {
    return "cut short";
  }
  return fmt::format("{:016x}", foot.checksum);
}

uint64_t crc_of_file(const std::string& path) {
  io::RegularFile file(path);
  std::string part(1 << 20, '\0');
  uint64_t sum = 0;
  while (const size_t got = file.read(part.data(), part.size())) sum = crc_of({part.data(), got}, sum);
  return sum;
}

// `expected`: [bytes, CRC-32], or for a link [bytes, checksum in hexadecimal digits].
void check_file(const std::string& path, const Json& expected) {
  AB_CHECK(fs::is_regular_file(path), NotFound, "{} does not exist", path);
  const auto size = expected.at(0).get<uint64_t>(), found_size = uint64_t{fs::file_size(path)};
  AB_CHECK(found_size == size, InvalidArgument, "{} must have {} bytes, got {}", path, size, found_size);
  const Json found = expected.at(1).is_string() ? Json(sum_at_end(path, size)) : Json(crc_of_file(path));
  AB_CHECK(found == expected.at(1), InvalidArgument, "{}: its checksum must be {}, got {}", path, expected.at(1).dump(),
           found.dump());
}

VersionStatus status_of(const std::string& path, const Json& status) {
  const auto format = status.at("format").get<int64_t>();
  AB_CHECK(format == kFormat, InvalidArgument, "{}: the format is {}, this version reads {}", path, format, kFormat);
  VersionStatus out;
  out.step = status.at("step").get<int64_t>();
  out.trained_at = status.value("time", 0.0);
  status.at("variables").at("dense").get_to(out.dense);
  status.at("variables").at("tables").get_to(out.tables);
  if (status.contains("chain")) status.at("chain").at("run").get_to(out.run);
  return out;
}

}  // namespace

std::vector<int64_t> VersionFolder::numbers() const {
  std::vector<int64_t> found;
  std::error_code failed;
  const std::string prefix = kPrefix;
  for (fs::directory_iterator at(root_, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename();
    const char* const last = name.data() + name.size();
    int64_t number = 0;
    if (!name.starts_with(prefix)) continue;
    const auto read = std::from_chars(name.data() + prefix.size(), last, number);
    if (read.ec == std::errc() && read.ptr == last && number >= 0) found.push_back(number);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string VersionFolder::path(int64_t number) const { return fmt::format("{}/{}{:06}", root_, kPrefix, number); }

std::optional<int64_t> VersionFolder::pinned() const {
  const std::string name = root_ + "/" + kPin;
  if (!fs::exists(name)) return std::nullopt;
  return use_json(name, io::read_file(name), [](const Json& pin) { return pin.at("version").get<int64_t>(); });
}

VersionStatus VersionFolder::read(int64_t number) const {
  const std::string name = path(number) + "/" + kStatus, text = io::read_file(name);
  return use_json(name, text, [&](const Json& status) {
    check_text(name, text, status);
    VersionStatus out = status_of(name, status);
    for (const auto& [file, expected] : status.at("files").items()) {
      check_file(path(number) + "/" + fs::path(file).filename().string(), expected);
    }
    return out;
  });
}

std::string VersionFolder::signature(int64_t after, int64_t number) const {
  std::vector<std::string> found;
  for (const int64_t n : numbers()) {
    if (n <= std::min(after, number - 1) || n > number) continue;
    std::error_code failed;
    for (fs::directory_iterator at(path(n), failed), end; !failed && at != end; at.increment(failed)) {
      struct stat info {};
      if (::stat(at->path().c_str(), &info) != 0) continue;
      found.push_back(fmt::format("{} {} {} {}.{}", n, at->path().filename().string(), info.st_size,
                                  info.st_mtim.tv_sec, info.st_mtim.tv_nsec));
    }
  }
  std::sort(found.begin(), found.end());
  return fmt::format("{}", fmt::join(found, "\n"));
}

std::string VersionFolder::table_path(int64_t number, const std::string& table) const {
  return fmt::format("{}/{}.{}", path(number), kVersionValues, table);
}

std::vector<std::string> VersionFolder::chain(int64_t number, const std::string& table) const {
  std::vector<std::string> files;
  for (std::string whole; whole = table_path(number, table), !fs::exists(whole);) {
    const std::string changes = whole + kChanges;
    AB_CHECK(fs::exists(changes), NotFound, "{} does not exist{}", changes,
             files.empty() ? "" : fmt::format(": {} follows it", files.front()));
    const int64_t before = sparse::LinkReader::place_of(changes).previous;
    AB_CHECK(before >= 0 && before < number, InvalidArgument, "{} follows link {}: none with this number is before it",
             changes, before);
    files.insert(files.begin(), changes);
    number = before;
  }
  files.insert(files.begin(), table_path(number, table));
  return files;
}

std::vector<std::string> VersionFolder::changes(int64_t after, int64_t number, const std::string& table) const {
  std::vector<std::string> files;
  while (number > after) {
    const std::string changes = table_path(number, table) + kChanges;
    if (!fs::exists(changes)) return {};
    files.insert(files.begin(), changes);
    const int64_t before = sparse::LinkReader::place_of(changes).previous;
    AB_CHECK(before < number, InvalidArgument, "{} follows link {}: it is not that of version {}", changes, before,
             number);
    number = before;
  }
  return number == after ? files : std::vector<std::string>{};
}

}  // namespace anabranch
