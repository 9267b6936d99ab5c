// Variables from files.
#include <cstring>
#include <string_view>

#include "io/files.h"
#include "io/tensor_stream.h"
#include "ops/files/streams.h"

namespace anabranch::files::load_op {
namespace {

void load_attrs(OpDef& def) {
  def.attr<bool>("load_as_fp16", false, "float32 numbers become float16")
      .required_attr("file_path", AttrType::kString, "the file")
      .effects(kReaches)
      .infer(known_when_read)
      .no_grad("reaches files");
}

void check_end(std::string_view rest, const std::string& path) {
  AB_CHECK(rest.empty(), InvalidArgument, "file {}: {} extra bytes behind the last variable", path, rest.size());
}

// So many elements from element `seek` on.
Tensor piece_of(const Tensor& whole, int64_t seek, const std::vector<int64_t>& extents) {
  for (const int64_t e : extents) AB_CHECK(e >= 0, InvalidArgument, "extents of shape must be at least 0, got {}", e);
  const Shape shape(extents);
  AB_CHECK(shape.numel() <= whole.numel() && seek <= whole.numel() - shape.numel(), InvalidArgument,
           "seek and shape must name elements of the file, of which there are {}, got {} from {} on", whole.numel(),
           shape.str(), seek);
  Tensor piece(shape, whole.dtype());
  const size_t size = dtype_size(whole.dtype());
  if (piece.bytes()) {
    std::memcpy(piece.mutable_raw(), static_cast<const char*>(whole.raw()) + static_cast<size_t>(seek) * size,
                piece.bytes());
  }
  return piece;
}

void put(const Tensor& loaded, bool half, Value& value) {
  value.as<Tensor>().copy_from(half ? as_float16(loaded) : loaded);
}

AB_OP(load)
    .doc("Out = the variable of a file. With seek: `shape` elements of it, from that one on.")
    .out("Out", "a tensor, or sparse rows where the variable is one of those")
    .attr<int64_t>("seek", int64_t{-1}, "first element; negative: the whole variable")
    .attr<std::vector<int64_t>>("shape", {}, "of Out, with seek")
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
        put(seek < 0 ? whole : piece_of(whole, seek, shape), half, value);
      };
    });

AB_OP(load_combine)
    .doc("Out = the variables of a file that holds them one behind the other.")
    .out_list("Out", "tensors")
    .attr<bool>("model_from_memory", false, "file_path is not a name, but what a file would hold")
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
          if (c.wants(out, i)) put(loaded[static_cast<size_t>(i)], half, c.value(out, i));
        }
      };
    });

}  // namespace
}  // namespace anabranch::files::load_op
