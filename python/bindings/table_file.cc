#include "table_file.h"

#include "base/error.h"
#include "data/table_input.h"

namespace anabranch::python {
namespace {

// A reference that threads without the GIL may copy and drop.
std::shared_ptr<nb::object> shared(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* held) {
            try {
              const Locked locked;
              delete held;
            } catch (const Error&) {  // the process ends: Python frees nothing any more
            }
          }};
}

class ArrowFile final : public data::TableFile {
 public:
  // With the GIL.
  ArrowFile(const nb::object& table, int64_t rows, std::string path)
      : capsule_(shared(table.attr("__arrow_c_stream__")())), path_(std::move(path)), rows_(rows) {
    stream_ = static_cast<data::ArrowArrayStream*>(PyCapsule_GetPointer(capsule_->ptr(), "arrow_array_stream"));
    if (!stream_) throw nb::python_error();
    const Unlocked unlocked;
    check(stream_->get_schema(stream_, &schema_));
  }
  ~ArrowFile() override {
    if (schema_.release) schema_.release(&schema_);
  }
  ArrowFile(const ArrowFile&) = delete;

  const data::ArrowSchema& schema() const override { return schema_; }
  int64_t rows() const override { return rows_; }
  bool next(data::ArrowArray* batch) override {
    const Locked locked;  // the stream calls Python, which releases the lock while it decodes
    check(stream_->get_next(stream_, batch));
    return batch->release != nullptr;
  }

 private:
  void check(int code) const {
    if (code == 0) return;
    const char* const why = stream_->get_last_error(stream_);
    AB_THROW(InvalidArgument, "{}: {}", path_, why ? why : "it cannot be read");
  }

  std::shared_ptr<nb::object> capsule_;
  data::ArrowArrayStream* stream_ = nullptr;
  data::ArrowSchema schema_{};
  std::string path_;
  int64_t rows_;
};

}  // namespace

void set_open_table(data::Settings* settings, nb::object open) {
  settings->open_table = [held = shared(std::move(open))](const std::string& path) -> std::unique_ptr<data::TableFile> {
    const Locked locked;
    const auto opened = nb::cast<nb::tuple>((*held)(path));
    return std::make_unique<ArrowFile>(nb::object(opened[0]), nb::cast<int64_t>(opened[1]), path);
  };
}

}  // namespace anabranch::python
