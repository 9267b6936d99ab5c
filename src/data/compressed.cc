// gzip (any number of members) and zstd (any number of frames). A file that ends inside one is an error.
#include <zlib.h>
#include <zstd.h>

#include <vector>

#include "base/error.h"
#include "data/byte_source.h"

namespace anabranch::data {
namespace {

constexpr size_t kInputBytes = 256 << 10;

// Common part: a buffer of compressed bytes that is refilled when it is empty.
class Compressed : public ByteSource {
 public:
  Compressed(std::unique_ptr<ByteSource> file, std::string path)
      : path_(std::move(path)), file_(std::move(file)), input_(kInputBytes) {}

  int64_t consumed() const override { return file_->consumed(); }

 protected:
  // False at the end of the file.
  bool fill() {
    at_ = 0;
    have_ = file_->read(input_.data(), input_.size());
    return have_ > 0;
  }

  std::string path_;
  std::unique_ptr<ByteSource> file_;
  std::vector<char> input_;
  size_t at_ = 0, have_ = 0;  // input_[at_, have_) is still to be consumed
};

class Gzip final : public Compressed {
 public:
  Gzip(std::unique_ptr<ByteSource> file, std::string path) : Compressed(std::move(file), std::move(path)) {
    AB_CHECK(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK, ResourceExhausted, "{}: no memory for zlib", path_);
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;

  size_t read(char* to, size_t capacity) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(capacity, 1 << 30));
    const uInt needed = stream_.avail_out;
    while (stream_.avail_out == needed) {
      if (at_ == have_ && !fill()) {
        AB_CHECK(between_, Unavailable, "{}: the gzip data ends too early", path_);
        return 0;
      }
      step();
    }
    return needed - stream_.avail_out;
  }

 private:
  void step() {
    if (between_) AB_CHECK(inflateReset(&stream_) == Z_OK, Internal, "{}: zlib cannot start again", path_);
    between_ = false;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + at_);
    stream_.avail_in = static_cast<uInt>(have_ - at_);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    at_ = have_ - stream_.avail_in;
    between_ = result == Z_STREAM_END;
    AB_CHECK(between_ || result == Z_OK || result == Z_BUF_ERROR, InvalidArgument, "{}: damaged gzip data: {}", path_,
             stream_.msg ? stream_.msg : "unreadable");
  }

  z_stream stream_{};
  bool between_ = false;  // between two members, or after the last one
};

class Zstd final : public Compressed {
 public:
  Zstd(std::unique_ptr<ByteSource> file, std::string path)
      : Compressed(std::move(file), std::move(path)), context_(ZSTD_createDCtx()) {
    AB_CHECK(context_ != nullptr, ResourceExhausted, "{}: no memory for zstd", path_);
  }
  ~Zstd() override { ZSTD_freeDCtx(context_); }
  Zstd(const Zstd&) = delete;

  size_t read(char* to, size_t capacity) override {
    ZSTD_outBuffer out{to, capacity, 0};
    while (out.pos == 0) {
      // The last call may have kept bytes inside for lack of room.
      if (at_ == have_ && !inside_ && !fill()) {
        AB_CHECK(hint_ == 0, Unavailable, "{}: the zstd data ends too early", path_);
        return 0;
      }
      ZSTD_inBuffer in{input_.data(), have_, at_};
      hint_ = ZSTD_decompressStream(context_, &out, &in);
      AB_CHECK(!ZSTD_isError(hint_), InvalidArgument, "{}: damaged zstd data: {}", path_, ZSTD_getErrorName(hint_));
      at_ = in.pos;
      inside_ = hint_ != 0 && out.pos == out.size;
    }
    return out.pos;
  }

 private:
  ZSTD_DCtx* context_;
  size_t hint_ = 0;  // 0: a frame is complete
  bool inside_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> gzip_source(std::unique_ptr<ByteSource> file, std::string path) {
  return std::make_unique<Gzip>(std::move(file), std::move(path));
}

std::unique_ptr<ByteSource> zstd_source(std::unique_ptr<ByteSource> file, std::string path) {
  return std::make_unique<Zstd>(std::move(file), std::move(path));
}

}  // namespace anabranch::data
