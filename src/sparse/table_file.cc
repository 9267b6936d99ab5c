#include "sparse/table_file.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "io/atomic_file.h"
#include "io/regular_file.h"
#include "sparse/growable_table.h"
#include "sparse/hash.h"
#include "sparse/shard_cut.h"
#include "sparse/table_chain.h"

namespace anabranch::sparse {

constexpr char kMagic[8] = {'A', 'B', 'T', 'A', 'B', 'L', 'E', '1'};
constexpr int64_t kEvicts = 1, kByUpdates = 1 << 8, kTimed = 1 << 9;

int64_t TableHeader::state() const { return width * moments + (rules::info_of(rule()).single ? 1 : 0); }

int64_t TableHeader::floats() const { return width + state() + (policy() == Policy::kRarest ? 1 : 0); }

size_t TableHeader::row_bytes() const {
  return sizeof(int64_t) + sizeof(uint32_t) + static_cast<size_t>(floats()) * sizeof(float);
}

TableHeader header_of(const TableOptions& o, bool with_moments, int64_t rows, int64_t clock) {
  const RowRule rule = with_moments ? o.rule : RowRule::kSgd;
  const int64_t written = rule > RowRule::kAdam ? static_cast<int64_t>(rule) + 1 : 0;  // the others as in older files
  TableHeader h{{},
                o.width,
                rules::info_of(rule).moments,
                rows,
                clock,
                static_cast<int64_t>(o.seed),
                o.max_bytes,
                o.expire_after,
                o.admit_count,
                (o.evict ? kEvicts : 0) | static_cast<int64_t>(o.policy) << 1 | (o.by_updates ? kByUpdates : 0) |
                    (o.timed ? kTimed : 0) | static_cast<int64_t>(o.start) << 10 | written << 16,
                o.low,
                o.high,
                o.moment_start,
                o.admit_probability};
  std::memcpy(h.magic, kMagic, sizeof(kMagic));
  return h;
}

TableOptions options_of(const TableHeader& h) {
  TableOptions o;
  o.width = h.width;
  o.rule = h.rule();
  o.moment_start = h.moment_start;
  o.seed = static_cast<uint64_t>(h.seed);
  o.start = h.start();
  o.low = h.low;
  o.high = h.high;
  o.max_bytes = h.max_bytes;
  o.evict = h.rules & kEvicts;
  o.policy = h.policy();
  o.score.known = o.policy != Policy::kLowestScore;
  o.by_updates = h.rules & kByUpdates;
  o.timed = h.rules & kTimed;
  o.admit_count = static_cast<int32_t>(h.admit_count);
  o.admit_probability = h.admit_probability;
  o.expire_after = h.expire_after;
  return o;
}

void check_header(const TableHeader& h, const std::string& where) {
  AB_CHECK(std::memcmp(h.magic, kMagic, sizeof(kMagic)) == 0, InvalidArgument, "{} is not a file of a growable table",
           where);
  AB_CHECK(h.width > 0 && h.width <= 65536 && h.moments >= 0 && h.moments <= 2 && h.clock > 0 && h.clock <= INT32_MAX &&
               h.rows >= 0 && h.admit_count >= 1 && h.admit_count <= 255 && h.policy() <= Policy::kLowestScore &&
               h.start() <= Start::kTruncatedNormal && static_cast<uint64_t>(h.rule()) < rules::kRowRules.size() &&
               rules::info_of(h.rule()).moments == h.moments,
           InvalidArgument, "{} is damaged: its header is invalid", where);
}

namespace {

constexpr size_t kWriteBytes = 1 << 20;

using Entry = TableShard::Entry;

void append(std::string* to, const void* data, size_t bytes) { to->append(static_cast<const char*>(data), bytes); }

// With all moments of the table, or with none.
void append_row(std::string* to, const Entry& e, const TableOptions& o, bool with_moments) {
  if (with_moments || o.state() == 0) return ShardCut::append_row(e.key, e.seen, e.record, o.floats(), to);
  ShardCut::append_row(e.key, e.seen, e.record, o.width, to);
  append(to, e.record + o.floats() - o.counts(), static_cast<size_t>(o.counts()) * sizeof(float));
}

void sort_by_key(std::vector<Entry>* entries) {
  std::sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
}

// Rows of a file, one after another.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path) {
    const TableHeader& h = header_;
    if (file_.read(&header_, sizeof(header_)) != sizeof(header_)) header_ = {};
    check_header(h, path);
    row_bytes_ = h.row_bytes();
    const uint64_t left = file_.size() - sizeof(h);
    AB_CHECK(left / row_bytes_ == static_cast<uint64_t>(h.rows) && left % row_bytes_ == 0, InvalidArgument,
             "{} is damaged: {} bytes for {} rows of {}", path, left, h.rows, row_bytes_);
    rows_.resize(std::max(kReadBytes / row_bytes_, size_t{1}) * row_bytes_);
  }
  const TableHeader& header() const { return header_; }
  // The next row, in place: unaligned.
  const char* next() {
    if (at_ == have_) {
      have_ = file_.read(rows_.data(), rows_.size()) / row_bytes_ * row_bytes_;
      at_ = 0;
      AB_CHECK(have_ > 0, Unavailable, "cannot read {}: the file became shorter while it was read", path_);
    }
    const char* row = rows_.data() + at_;
    at_ += row_bytes_;
    return row;
  }

 private:
  static constexpr size_t kReadBytes = 1 << 20;
  const std::string path_;
  io::RegularFile file_;
  TableHeader header_{};
  size_t row_bytes_ = 0, at_ = 0, have_ = 0;
  std::vector<char> rows_;
};

}  // namespace

TableHeader GrowableTable::header() {
  const std::lock_guard held(parts_[0].lock);
  return header_of(options_, true, 0, parts_[0].shard->clock());
}

int GrowableTable::bits_for(int64_t bytes, int64_t part_bytes) {
  int bits = KeyOrder::kBits;
  while (bits < kMostBits && bytes >> bits > part_bytes) ++bits;
  return bits;
}

void GrowableTable::append_rows(uint64_t part, int bits, std::string* to) {
  AB_CHECK(bits >= KeyOrder::kBits && bits <= kMostBits && part >> bits == 0, InvalidArgument,
           "table {} is cut by {} to {} bits of the hash, got part {} by {} bits", name_, KeyOrder::kBits, kMostBits,
           part, bits);
  check_not_image();
  const int within = bits - KeyOrder::kBits;
  Part& p = parts_[part >> within];
  const std::lock_guard held(p.lock);
  std::vector<Entry> entries;
  p.shard->each_row_of(part & ((uint64_t{1} << within) - 1), within,
                       [&](int64_t key, uint32_t seen, const float* record) {
                         entries.push_back({key, seen, record});
                       });
  sort_by_key(&entries);
  for (const Entry& e : entries) append_row(to, e, options_, true);
}

void GrowableTable::write(bool with_moments, io::AtomicFile* file) {
  check_not_image();
  const HoldAll held(*this);
  std::vector<Entry> entries;
  for (const Part& part : parts_) {
    part.shard->each_row([&](int64_t key, uint32_t seen, const float* record) {
      entries.push_back({key, seen, record});
    });
  }
  sort_by_key(&entries);
  const TableHeader header =
      header_of(options_, with_moments, static_cast<int64_t>(entries.size()), parts_[0].shard->clock());
  std::string buffer;
  append(&buffer, &header, sizeof(header));
  for (const Entry& e : entries) {
    append_row(&buffer, e, options_, with_moments);
    if (buffer.size() < kWriteBytes) continue;
    file->write(buffer);
    buffer.clear();
  }
  file->write(buffer);
}

void GrowableTable::save(const std::string& path, bool with_moments, io::FileSet* files) {
  write(with_moments, &files->add(path));
}

void GrowableTable::check_fits(const TableHeader& h, const std::string& path) const {
  AB_CHECK(h.width == options_.width && (h.rule() == options_.rule || h.state() == 0 || options_.state() == 0),
           ShapeMismatch, "{} holds rows of {} numbers with the moments of {}, table {} has {} with those of {}", path,
           h.width, rules::info_of(h.rule()).name, name_, options_.width, rules::info_of(options_.rule).name);
}

void GrowableTable::load(const std::string& path, const std::function<bool(int64_t key)>& mine) {
  if (LinkReader::is_link(path)) return load(TableChain({path}), mine);
  Reader file(path);
  const TableHeader& h = file.header();
  check_fits(h, path);
  GrowableTable fresh(name_, options_);
  if (!mine) fresh.reserve(h.rows);
  for (int64_t r = 0; r < h.rows; ++r) fresh.put_row(file.next(), h, mine, path);
  take(&fresh, h.clock);
}

// Its rows are now those of `fresh`.
void GrowableTable::take(GrowableTable* fresh, int64_t clock) {
  const HoldAll held(*this);
  for (Part& part : parts_) {
    auto& other = fresh->parts_[static_cast<size_t>(&part - parts_.data())].shard;
    other->set_clock(static_cast<uint32_t>(clock));
    std::swap(part.shard, other);
  }
  std::swap(memory_, fresh->memory_);
  std::swap(images_, fresh->images_);
  std::swap(own_, fresh->own_);
  fresh->has_own_ = has_own_.exchange(fresh->has_own_);
  since_ = 0;
}

std::shared_ptr<GrowableTable> GrowableTable::open(const std::string& name, const std::string& path,
                                                   const std::function<bool(int64_t key)>& mine) {
  const TableHeader header = LinkReader::is_link(path) ? LinkReader(path).table() : Reader(path).header();
  auto table = std::make_shared<GrowableTable>(name, options_of(header));
  table->load(path, mine);
  return table;
}

}  // namespace anabranch::sparse
