#include "ops/files/streams.h"

#include <filesystem>

#include "io/files.h"
#include "io/tensor_stream.h"

namespace anabranch::files {

void check_path(const std::string& path) {
  AB_CHECK(!path.empty() && path.find('\0') == std::string::npos, InvalidArgument,
           "file_path must be the name of a file, got \"{}\"", path);
}

Tensor as_float16(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat32) return tensor;
  Tensor made(tensor.shape(), DType::kFloat16);
  const auto* from = tensor.data<float>();
  auto* to = static_cast<_Float16*>(made.mutable_raw());
  for (int64_t i = 0; i < tensor.numel(); ++i) to[i] = static_cast<_Float16>(from[i]);
  made.set_lod(tensor.lod_ref());
  return made;
}

std::string stream_of(const Value& value, const std::string& name, bool as_half) {
  std::string bytes;
  if (const auto* rows = value.get<SelectedRows>()) {
    check_rows(*rows);
    io::write_selected_rows(*rows, &bytes);
    return bytes;
  }
  const auto* tensor = value.get<Tensor>();
  AB_CHECK(tensor && tensor->initialized(), InvalidArgument, "{} must hold a tensor or sparse rows to be saved", name);
  io::write_tensor(as_half ? as_float16(*tensor) : *tensor, &bytes);
  return bytes;
}

void write_file(const std::string& path, bool overwrite, const std::string& bytes) {
  std::error_code ignored;
  AB_CHECK(overwrite || !std::filesystem::exists(path, ignored), InvalidArgument,
           "overwrite must be true to replace file {}, which exists", path);
  io::FileSet files;
  files.add(path).write(bytes);
  files.commit();
}

}  // namespace anabranch::files
