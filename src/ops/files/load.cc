// Loads variables from files.
#include <cstring>
#include <string_view>

#include "io/files.h"
#include "io/tensor_stream.h"
#include "ops/files/streams.h"

namespace anabranch::files::load_op {
namespace {

void load_attrs(OpDef& def) {
  def.attr<bool>("load_as_fp16", false, "converts float32 to float16")
      .required_attr("file_path", AttrType::kString, "the file")
      .effects(kReaches)
      .infer(known_when_read)
      .no_grad("reads a file");
}

void check_end(std::string_view rest, const std::string& path) {
  AB_CHECK(rest.empty(), InvalidArgument, "file {}: {} extra bytes after the last variable", path, rest.size());
}

// Elements [seek, seek + product of extents).
Tensor chunk_of(const Tensor& whole, int64_t seek, const std::vector<int64_t>& extents) {
  for (const int64_t e : extents) AB_CHECK(e >= 0, InvalidArgument, "extents of shape must be at least 0, got {}", e);
  const Shape shape(extents);
  AB_CHECK(shape.numel() <= whole.numel() && seek <= whole.numel() - shape.numel(), InvalidArgument,
           "seek and shape must name elements of the file, which has {}, got shape {} at element {}", whole.numel(),
           shape.str(), seek);
  Tensor chunk(shape, whole.dtype());
  const size_t size = dtype_size(whole.dtype());
  if (chunk.bytes()) {
    std::memcpy(chunk.mutable_raw(), static_cast<const char*>(whole.raw()) + static_cast<size_t>(seek) * size,
                chunk.bytes());
  }
  return chunk;
}

void put(const Tensor& loaded, bool half, Value& value) {
  value.as<Tensor>().copy_from(half ? as_float16(loaded) : loaded);
}

AB_OP(load)
    .doc("Out = the variable stored in a file; with seek, `shape` elements of it, starting at element seek.")
    .out("Out", "a tensor or sparse rows, as stored")
    .attr<int64_t>("seek", int64_t{-1}, "first element to read; negative: the whole variable")
    .attr<std::vector<int64_t>>("shape", {}, "shape of Out; used with seek")
    .with(load_attrs)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      check_path(op.attr<std::string>("file_path"));
      return [path = op.attr<std::string>("file_path"), half = op.attr<bool>("load_as_fp16"),
              seek = op.attr<int64_t>("seek"), shape = op.attr<std::vector<int64_t>>("shape"), out = op.out("Out"),
              what = op.op().output("Out")[0] + " in file " + op.attr<std::string>("file_path")](KernelContext& c) {
        const std::string bytes = io::read_file(path);
        std::string_view rest = bytes;
        Value& value = c.value(out);
        if (value.is<SelectedRows>()) {
          SelectedRows rows = io::read_selected_rows(&rest, what);
          check_end(rest, path);
          value.as<SelectedRows>() = std::move(rows);
          return;
        }
        const Tensor whole = io::read_tensor(&rest, what);
        check_end(rest, path);
        put(seek < 0 ? whole : chunk_of(whole, seek, shape), half, value);
      };
    });

AB_OP(load_combine)
    .doc("Out = the variables stored one after another in a file.")
    .out_list("Out", "tensors")
    .attr<bool>("model_from_memory", false, "file_path holds the contents of the file instead of its name")
    .with(load_attrs)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const bool memory = op.attr<bool>("model_from_memory");
      if (!memory) check_path(op.attr<std::string>("file_path"));
      return [=, path = op.attr<std::string>("file_path"), half = op.attr<bool>("load_as_fp16"), out = op.out("Out"),
              names = op.op().output("Out")](KernelContext& c) {
        const std::string bytes = memory ? path : io::read_file(path), file = memory ? "in memory" : path;
        std::string_view rest = bytes;
        std::vector<Tensor> loaded;
        for (const auto& name : names) loaded.push_back(io::read_tensor(&rest, name + " in file " + file));
        check_end(rest, file);
        for (int i = 0; i < out.count; ++i) {
          if (c.needs(out, i)) put(loaded[static_cast<size_t>(i)], half, c.value(out, i));
        }
      };
    });

}  // namespace
}  // namespace anabranch::files::load_op
