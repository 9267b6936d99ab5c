// Images of shards: files that have the rows and the index of a shard as they are in memory, so that processes map them
// instead of reading them. The parts of a file start at multiples of 64. The files are those of one machine: they are
// made again when they are lost, and by other versions of this code.
#include <cstring>
#include <mutex>

#include "base/checksum.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "sparse/growable_table.h"
#include "sparse/table_link.h"

namespace anabranch::sparse {
namespace {

constexpr char kImageStart[8] = {'A', 'B', 'I', 'M', 'A', 'G', 'E', '1'};
constexpr uint64_t kAlignment = 64;
constexpr size_t kFlushBytes = 1 << 20;

struct ImageHead {
  char magic[8];
  uint64_t checksum;  // of all after the head, and then of the head with 0 here
  uint64_t link, shard;
  int64_t width;
  uint64_t bytes;                          // of the file
  uint64_t rows, records, index, buckets;  // of the shard; records and index: where they start
  char rest[48];
};
static_assert(sizeof(ImageHead) % kAlignment == 0);

uint64_t checksum_of(ImageHead head, Checksum sum) {
  head.checksum = 0;
  sum.add(view_of(head));
  return sum.value();
}

class ImageWriter {
 public:
  explicit ImageWriter(io::AtomicFile* file) : file_(file) { file_->write(view_of(ImageHead{})); }

  uint64_t begin_part() {
    buffer_.resize((buffer_.size() + kAlignment - 1) / kAlignment * kAlignment);  // written parts are multiples of it
    return at_ + buffer_.size();
  }
  void add(const void* data, size_t bytes) {
    buffer_.append(static_cast<const char*>(data), bytes);
    if (buffer_.size() >= kFlushBytes) write(buffer_.size() / kAlignment * kAlignment);
  }
  void end(ImageHead* head) {
    head->bytes = begin_part();
    write(buffer_.size());
    head->checksum = checksum_of(*head, sum_);
    file_->write_at_begin(view_of(*head));
  }

 private:
  void write(size_t bytes) {
    const std::string_view part(buffer_.data(), bytes);
    sum_.add(part);
    file_->write(part);
    at_ += bytes;
    buffer_.erase(0, bytes);
  }

  io::AtomicFile* const file_;
  std::string buffer_;
  uint64_t at_ = sizeof(ImageHead);
  Checksum sum_;
};

ImageHead head_of(const std::string& path, std::string_view bytes, size_t shard, uint64_t link) {
  const auto fail = [&](const char* why) {
    AB_THROW(InvalidArgument, "{} is not a whole image of a growable table: {}", path, why);
  };
  ImageHead head{};
  if (bytes.size() < sizeof(head)) fail("it is too short");
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (std::memcmp(head.magic, kImageStart, sizeof(kImageStart)) != 0) fail("it does not start like one");
  if (head.bytes != bytes.size()) fail("its size is wrong");
  Checksum sum;
  sum.add(bytes.substr(sizeof(head)));
  if (head.checksum != checksum_of(head, sum)) fail("its checksum is wrong");
  if (head.link != link || head.shard != shard) fail("it belongs to another checkpoint, or another part of the table");
  return head;
}

}  // namespace

void GrowableTable::check_not_image() const {
  AB_CHECK(!own_, Unsupported,
           "table {} follows checkpoints and shares its rows with other processes: only lookups read it", name_);
}

void GrowableTable::each_current(size_t shard, const std::function<void(int64_t, const float*)>& fn) const {
  const TableShard* const own = has_own_ ? own_->parts_[shard].shard.get() : nullptr;
  parts_[shard].shard->each_row([&](int64_t key, uint32_t, const float* record) {
    if (!own || !own->has(key)) fn(key, record);
  });
  if (!own) return;
  own->each_row([&](int64_t key, uint32_t seen, const float* record) {
    if (seen == kThere) fn(key, record);
  });
}

void GrowableTable::write_image(size_t shard, uint64_t link, io::AtomicFile* file) const {
  ImageHead head{};
  std::memcpy(head.magic, kImageStart, sizeof(kImageStart));
  head.link = link;
  head.shard = shard;
  head.width = options_.width;
  ImageWriter out(file);
  TableOptions o;
  o.width = options_.width;
  std::vector<float> padded(static_cast<size_t>(record_stride(o)));
  int64_t rows = 0;
  each_current(shard, [&](int64_t, const float*) { ++rows; });
  TableIndex index;
  index.begin(1, UINT64_MAX);
  index.reserve(rows);
  head.records = out.begin_part();
  each_current(shard, [&](int64_t key, const float* record) {
    std::memcpy(padded.data(), record, static_cast<size_t>(o.width) * sizeof(float));
    out.add(padded.data(), padded.size() * sizeof(float));
    index.insert(static_cast<uint64_t>(key), static_cast<uint32_t>(++head.rows), kThere);
  });
  head.index = out.begin_part();
  head.buckets = index.buckets();
  out.add(index.data(), static_cast<size_t>(index.bytes()));
  out.end(&head);
}

// Own rows of a shard are freed with its image: they do not share memory with those of other shards.
std::shared_ptr<GrowableTable> GrowableTable::for_images(const std::string& name, int64_t width) {
  TableOptions o;
  o.width = width;
  auto table = std::make_shared<GrowableTable>(name, o);
  o.few = true;
  table->own_ = std::make_shared<GrowableTable>(name, o);
  return table;
}

// The checksum vouches for the numbers of the rows in the index.
void GrowableTable::map_image(size_t shard, uint64_t link, const std::string& path) {
  auto image = std::make_shared<io::MappedFile>(path);
  const std::string_view bytes = image->bytes();
  const ImageHead head = head_of(path, bytes, shard, link);
  AB_CHECK(head.width == options_.width, InvalidArgument, "{} has rows of {} numbers, table {} of {}", path, head.width,
           name_, options_.width);
  const TableShard::Image rows{reinterpret_cast<const TableIndex::Bucket*>(bytes.data() + head.index), head.buckets,
                               reinterpret_cast<const float*>(bytes.data() + head.records),
                               static_cast<uint32_t>(head.rows)};
  parts_[shard].shard = std::make_unique<TableShard>(options_, rows);
  images_[shard] = std::move(image);
}

int64_t GrowableTable::held_rows(size_t shard) const { return parts_[shard].shard->rows(); }

int64_t GrowableTable::own_rows(size_t shard) const { return own_ ? own_->held_rows(shard) : 0; }

// They come in the order of their hashes (TableIndex::reserve).
void GrowableTable::begin_own(int64_t more) {
  const int64_t each = more / kShards, room = each / 64 + 64;
  for (Part& part : own_->parts_) {
    const std::lock_guard held(part.lock);
    part.shard->reserve(part.shard->rows() + each + room);
  }
  has_own_.store(true, std::memory_order_release);
}

void GrowableTable::exchange_images(GrowableTable* other) {
  const HoldAll held(*this);
  for (size_t s = 0; s < parts_.size(); ++s) {
    if (!other->images_[s]) continue;
    std::swap(parts_[s].shard, other->parts_[s].shard);
    std::swap(images_[s], other->images_[s]);
    std::swap(own_->parts_[s].shard, other->own_->parts_[s].shard);
  }
}

void GrowableTable::add_own(TableStats* sum) {
  if (!has_own_) return;
  for (size_t s = 0; s < parts_.size(); ++s) {
    Part& part = own_->parts_[s];
    const std::lock_guard held(parts_[s].lock), own(part.lock);
    sum->bytes += part.shard->stats().bytes;
    part.shard->each_row([&](int64_t key, uint32_t seen, const float*) {
      sum->rows += (seen == kThere ? 1 : 0) - (parts_[s].shard->has(key) ? 1 : 0);
    });
  }
}

}  // namespace anabranch::sparse
