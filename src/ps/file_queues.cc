#include "ps/file_queues.h"

#include <algorithm>
#include <utility>

namespace anabranch::ps {

// One name more than there are zero bytes; empty text: no file.
std::vector<std::string> FileQueues::split(std::string_view names) {
  std::vector<std::string> out;
  if (names.empty()) return out;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find('\0', begin), names.size());
    out.emplace_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

bool FileQueues::knows(std::string_view key, std::string_view names) const {
  AB_CHECK(!key.empty() && key.size() <= kLongestKey, InvalidArgument,
           "the name of a queue of files must have from 1 to {} bytes, got {}", kLongestKey, key.size());
  AB_CHECK(names.size() <= kMostBytes, InvalidArgument, "the names in the queue of files {} have {} bytes, at most {}",
           key, names.size(), kMostBytes);
  const std::vector<std::string> given = split(names);
  for (const std::string& name : given) {
    AB_CHECK(!name.empty() && name.size() <= kLongestName, InvalidArgument,
             "a name in the queue of files {} must have from 1 to {} bytes, got {}", key, kLongestName, name.size());
  }
  const auto it = queues_.find(key);
  if (it == queues_.end()) {
    AB_CHECK(queues_.size() < kMostQueues, ResourceExhausted, "there are {} queues of files, one more is {}",
             kMostQueues, key);
    return false;
  }
  const auto& files = it->second.files;
  const bool same = std::equal(files.begin(), files.end(), given.begin(), given.end(),
                               [](const File& file, const std::string& name) { return file.name == name; });
  AB_CHECK(same || files.empty(), InvalidArgument,
           "all trainers must name the same files for the queue {}, which has {}; got {} files, or others", key,
           files.size(), given.size());
  return true;
}

void FileQueues::add(std::string_view key, std::string_view names) {
  Queue& queue = queues_[std::string(key)];
  queue.files.clear();
  for (std::string& name : split(names)) queue.files.push_back({std::move(name), State::kWaits, {}, {}});
  queue.left = static_cast<int64_t>(queue.files.size());
}

const FileQueues::Queue& FileQueues::find(std::string_view key) const {
  const auto it = queues_.find(key);
  AB_CHECK(it != queues_.end(), NotFound, "there is no queue of files {}", key.substr(0, kLongestKey));
  return it->second;
}

const FileQueues::File& FileQueues::file_of(std::string_view key, int64_t file) const {
  const Queue& queue = find(key);
  AB_CHECK(file >= 0 && file < static_cast<int64_t>(queue.files.size()), InvalidArgument,
           "the queue of files {} has {} files, got number {}", key, queue.files.size(), file);
  return queue.files[static_cast<size_t>(file)];
}

void FileQueues::go_back(File& file) {
  file.state = State::kWaits;
  ++counts_.returned;
}

int64_t FileQueues::next(std::string_view key, TimePoint now, const Heard& heard) {
  Queue& queue = find(key);
  for (File& file : queue.files) {
    if (file.state == State::kLeased && now - std::max(file.since, heard(file.holder.trainer)) > lease_) go_back(file);
    if (file.state == State::kWaits) return &file - queue.files.data();
  }
  return -1;
}

void FileQueues::lease(std::string_view key, int64_t file, Holder holder, TimePoint now) {
  File& f = file_of(key, file);
  f.state = State::kLeased;
  f.holder = holder;
  f.since = now;
  ++counts_.taken;
}

const std::string& FileQueues::name(std::string_view key, int64_t file) const { return file_of(key, file).name; }

int64_t FileQueues::left(std::string_view key) const { return find(key).left; }

bool FileQueues::holds(std::string_view key, int64_t file, Holder holder) const {
  if (find(key).left == 0) return false;
  const File& f = file_of(key, file);
  return f.state != State::kDone && f.holder == holder;
}

void FileQueues::end(std::string_view key, int64_t file, bool trained) {
  File& f = file_of(key, file);
  f.state = trained ? State::kDone : State::kWaits;
  f.holder = {};
  if (!trained) return;
  ++counts_.done;
  Queue& queue = find(key);
  if (--queue.left == 0) std::vector<File>().swap(queue.files);  // only the existence of a finished queue matters
}

void FileQueues::give_up(uint32_t trainer) {
  for (auto& [key, queue] : queues_) {
    for (File& file : queue.files) {
      if (file.state == State::kLeased && file.holder.trainer == trainer) go_back(file);
    }
  }
}

// Key, names, and four numbers for each file that does not wait: which, its state, and its worker.
void FileQueues::save(const std::function<void(std::shared_ptr<Message>)>& put) const {
  for (const auto& [key, queue] : queues_) {
    std::vector<std::string> names;
    std::vector<int64_t> states;
    for (size_t i = 0; i < queue.files.size(); ++i) {
      const File& f = queue.files[i];
      names.push_back(f.name);
      if (f.state == State::kWaits) continue;
      states.insert(states.end(), {static_cast<int64_t>(i), static_cast<int64_t>(f.state), f.holder.trainer,
                                   static_cast<int64_t>(f.holder.incarnation)});
    }
    auto record = offer_files(key, names);
    record->add_ids(0, states);
    put(std::move(record));
  }
}

void FileQueues::load(const Message& record, TimePoint now) {
  const std::string_view key = record.text(0);
  add(key, record.text(1));
  Queue& queue = find(key);
  const auto states = record.ids(2);
  for (size_t i = 0; i + 3 < states.size(); i += 4) {
    File& f = file_of(key, states[i]);
    f.state = static_cast<State>(states[i + 1]);
    f.holder = {static_cast<uint32_t>(states[i + 2]), static_cast<uint64_t>(states[i + 3])};
    f.since = now;  // an earlier server may have been the only one to know its holder
    if (f.state == State::kDone) --queue.left;
  }
}

std::shared_ptr<Message> offer_files(std::string_view key, const std::vector<std::string>& names) {
  auto m = std::make_shared<Message>(Verb::kOfferFiles);
  std::string text;
  for (const std::string& name : names) {
    if (&name != names.data()) text += '\0';
    text += name;
  }
  m->add_text(key);
  m->add_text(text);
  return m;
}

std::shared_ptr<Message> take_file(std::string_view key) {
  auto m = std::make_shared<Message>(Verb::kTakeFile);
  m->add_text(key);
  return m;
}

std::shared_ptr<Message> end_file(std::string_view key, int64_t file, bool trained) {
  auto m = std::make_shared<Message>(Verb::kEndFile);
  m->header().flags = trained ? Header::kTrained : 0;
  m->add_text(key);
  m->add_ids(0, std::span(&file, 1));
  return m;
}

}  // namespace anabranch::ps
