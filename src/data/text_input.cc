#include <algorithm>

#include "data/input.h"
#include "data/number.h"

namespace anabranch::data {
namespace {

constexpr size_t kChunkBytes = 256 << 10;
constexpr size_t kShownOfLongLine = 4 << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class TextInput final : public Input {
 public:
  TextInput(std::unique_ptr<ByteSource> source, std::shared_ptr<const RowParser> parser, std::string path,
            int64_t max_line_bytes, const std::atomic<bool>* stop)
      : source_(std::move(source)),
        parser_(std::move(parser)),
        path_(std::move(path)),
        max_line_bytes_(static_cast<size_t>(std::max<int64_t>(max_line_bytes, 1))),
        stop_(stop) {}

  bool claim(Chunk* chunk) override {
    Buffer& raw = chunk->raw;
    raw.size = 0;
    chunk->too_long = false;
    chunk->index = chunk_;
    put(&raw, carry_.data(), carry_.size());
    carry_.clear();
    size_t searched = 0;  // no line end before it
    for (;;) {
      fill(&raw, std::max(kChunkBytes, std::min(2 * searched, max_line_bytes_ + 1)));
      if (chunk_ == 0 && searched == 0) drop_byte_order_mark(&raw);
      const char* last = static_cast<const char*>(memrchr(raw.data() + searched, '\n', raw.size - searched));
      if (last) {
        cut(&raw, static_cast<size_t>(last - raw.data()) + 1);
        break;
      }
      if (ended_) {
        if (raw.size == 0) return false;
        put(&raw, "\n", 1);
        break;
      }
      searched = raw.size;
      if (searched > max_line_bytes_) {
        skip_line(chunk);
        break;
      }
    }
    std::memset(raw.data() + raw.size, 0, kTextPadding);
    if (chunk_++ == 0) {
      const std::string_view text(raw.data(), raw.size);
      head_ = parser_->head(text.substr(0, text.find('\n')), path_);
    }
    return true;
  }

  void finish(Chunk* chunk, Block* out) const override {
    out->bytes = static_cast<int64_t>(chunk->raw.size);
    if (chunk->too_long) {
      RowWriter(out).refuse(1, -1, BadReason::kLineTooLong, {chunk->raw.data(), chunk->raw.size});
    } else {
      parser_->parse({chunk->raw.data(), chunk->raw.size}, head_, out);
    }
  }

  int64_t consumed() const override { return source_->consumed(); }

 private:
  static void put(Buffer* raw, const char* bytes, size_t count) {
    raw->reserve(std::max(raw->size + count, kChunkBytes) + kTextPadding);
    if (count) std::memcpy(raw->data() + raw->size, bytes, count);
    raw->size += count;
  }

  // Reads until there are `needed` bytes, or to the end; or until there is a line and a command is slow with the next.
  void fill(Buffer* raw, size_t needed) {
    raw->reserve(needed + kTextPadding);
    while (!ended_ && raw->size < needed) {
      const size_t n = source_->read(raw->data() + raw->size, needed - raw->size);
      raw->size += n;
      ended_ = n == 0;
      if (!ended_ && raw->size < needed && memrchr(raw->data(), '\n', raw->size) && source_->waits()) return;
    }
  }

  // It does not belong to the first field, whether that is a name or a value.
  static void drop_byte_order_mark(Buffer* raw) {
    if (!std::string_view(raw->data(), raw->size).starts_with(kByteOrderMark)) return;
    raw->size -= kByteOrderMark.size();
    std::memmove(raw->data(), raw->data() + kByteOrderMark.size(), raw->size);
  }

  // Text after the last line end waits for the next chunk.
  void cut(Buffer* raw, size_t end) {
    carry_.assign(raw->data() + end, raw->size - end);
    raw->size = end;
  }

  // The chunk is the start of one line: its end is searched for without keeping the text between.
  void skip_line(Chunk* chunk) {
    chunk->too_long = true;
    Buffer rest;
    const char* end = nullptr;
    while (!end && !ended_ && !*stop_) {
      rest.size = 0;
      fill(&rest, kChunkBytes);
      end = static_cast<const char*>(std::memchr(rest.data(), '\n', rest.size));
    }
    if (end) cut(&rest, static_cast<size_t>(end - rest.data()) + 1);
    chunk->raw.size = std::min(chunk->raw.size, kShownOfLongLine);
  }

  std::unique_ptr<ByteSource> source_;
  std::shared_ptr<const RowParser> parser_;
  std::string path_;
  FileHead head_;  // since the first chunk was claimed
  size_t max_line_bytes_;
  const std::atomic<bool>* stop_;
  std::string carry_;
  int64_t chunk_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Input> text_input(std::unique_ptr<ByteSource> source, std::shared_ptr<const RowParser> parser,
                                  const std::string& path, int64_t max_line_bytes, const std::atomic<bool>* stop) {
  return std::make_unique<TextInput>(std::move(source), std::move(parser), path, max_line_bytes, stop);
}

}  // namespace anabranch::data
