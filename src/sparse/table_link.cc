#include "sparse/table_link.h"

#include <cstring>

#include "base/error.h"

namespace anabranch::sparse {
namespace {

constexpr char kLinkStart[8] = {'A', 'B', 'L', 'I', 'N', 'K', 'S', '1'};
constexpr char kLinkEnd[8] = {'A', 'B', 'L', 'I', 'N', 'K', 'E', '1'};
constexpr int64_t kMostNameBytes = 4096;

static_assert(sizeof(LinkPlace) == 56 && sizeof(LinkFoot) == 32);

size_t row_bytes_of(RowForm form, const TableHeader& table) {
  return form == RowForm::kTraining ? table.row_bytes() : served_row_bytes(form, table.width);
}

}  // namespace

LinkWriter::LinkWriter(io::AtomicFile* file, const std::string& name, const LinkPlace& place, const TableHeader& table,
                       std::span<const int64_t> gone, RowForm form)
    : file_(file), row_bytes_(row_bytes_of(form, table)), gone_(static_cast<int64_t>(gone.size())) {
  LinkHead head{{}, place, static_cast<int64_t>(name.size()), form, table};
  std::memcpy(head.magic, kLinkStart, sizeof(kLinkStart));
  write(view_of(head));
  write(name);
  write({reinterpret_cast<const char*>(gone.data()), gone.size_bytes()});
}

void LinkWriter::write(std::string_view bytes) {
  sum_.add(bytes);
  file_->write(bytes);
}

void LinkWriter::add_rows(std::string_view rows) {
  row_bytes_written_ += rows.size();
  write(rows);
}

uint64_t LinkWriter::end() {
  LinkFoot foot{{gone_, static_cast<int64_t>(row_bytes_written_ / row_bytes_)}, 0, {}};
  sum_.add(view_of(foot.counts));
  foot.checksum = sum_.value();
  std::memcpy(foot.magic, kLinkEnd, sizeof(kLinkEnd));
  file_->write(view_of(foot));
  return foot.checksum;
}

bool LinkReader::is_link(const std::string& path) {
  io::RegularFile file(path);
  char magic[sizeof(kLinkStart)];
  return file.read(magic, sizeof(magic)) == sizeof(magic) && std::memcmp(magic, kLinkStart, sizeof(magic)) == 0;
}

LinkPlace LinkReader::place_of(const std::string& path) {
  LinkHead head{};
  AB_CHECK(is_link(path) && io::RegularFile(path).read(&head, sizeof(head)) == sizeof(head), InvalidArgument,
           "{} is not a link of a growable table", path);
  return head.place;
}

void LinkReader::fail(const std::string& why) const {
  AB_THROW(InvalidArgument, "{} is not a whole link of a growable table: {}", path_, why);
}

LinkReader::LinkReader(const std::string& path) : path_(path) {
  io::RegularFile file(path);
  read_head(&file);
  Checksum sum;
  sum.add(start_);
  if (file.size() < start_.size() + sizeof(foot_)) fail("it ends too early");
  const uint64_t body = file.size() - start_.size() - sizeof(foot_);
  each_part(&file, body, 1, &sum, [](std::string_view) {});
  if (file.read(&foot_, sizeof(foot_)) != sizeof(foot_)) fail("it became shorter while it was read");
  if (std::memcmp(foot_.magic, kLinkEnd, sizeof(kLinkEnd)) != 0) fail("it has no end");
  sum.add(view_of(foot_.counts));
  if (foot_.checksum != sum.value()) {
    fail(fmt::format("its checksum is {:x}, its bytes have {:x}", foot_.checksum, sum.value()));
  }
  const uint64_t row_bytes = this->row_bytes();
  const auto gone = static_cast<uint64_t>(foot_.counts.gone), rows = static_cast<uint64_t>(foot_.counts.rows);
  if (gone > body / sizeof(int64_t) || rows > body / row_bytes || gone * sizeof(int64_t) + rows * row_bytes != body) {
    fail(fmt::format("{} bytes are not {} keys and {} rows of {}", body, gone, rows, row_bytes));
  }
}

size_t LinkReader::row_bytes() const { return row_bytes_of(head_.form, head_.table); }

void LinkReader::read_head(io::RegularFile* file) {
  if (file->read(&head_, sizeof(head_)) != sizeof(head_) ||
      std::memcmp(head_.magic, kLinkStart, sizeof(kLinkStart)) != 0) {
    fail("it does not start like one");
  }
  check_header(head_.table, path_);
  const LinkPlace& p = head_.place;
  if (head_.name_bytes < 0 || head_.name_bytes > kMostNameBytes || p.number < 0 || p.previous < -1 ||
      p.previous >= p.number || p.whole > 1 || head_.form < RowForm::kTraining || head_.form > RowForm::kInt8 ||
      (head_.form != RowForm::kTraining && head_.table.state() != 0)) {
    fail("its head is invalid");
  }
  name_.resize(static_cast<size_t>(head_.name_bytes));
  if (file->read(name_.data(), name_.size()) != name_.size()) fail("it ends in its name");
  start_.assign(view_of(head_));
  start_ += name_;
}

}  // namespace anabranch::sparse
