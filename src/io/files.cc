#include "io/files.h"

#include <filesystem>
#include <variant>

#include "io/regular_file.h"
#include "io/tensor_stream.h"

namespace anabranch::io {
namespace {

namespace fs = std::filesystem;

// Fluid uses a variable's name as its file name; a "/" in it makes a sub-folder. The path must stay inside the folder.
std::string file_of_var(const std::string& folder, const std::string& name) {
  bool inside = !name.empty() && name.find('\0') == std::string::npos && fs::path(name).is_relative();
  std::string last;
  for (const auto& part : fs::path(name)) {
    last = part.string();
    inside = inside && last != ".." && last != ".";
  }
  AB_CHECK(inside && !last.empty(), InvalidArgument,
           "variable \"{}\" cannot be a file: its name leads out of the folder", name);
  return (fs::path(folder) / name).string();
}

// A part of the path may be a link to somewhere else, which is followed only while that stays inside.
void check_stays_inside(const std::string& folder, const fs::path& path) {
  std::error_code failed;
  const fs::path root = fs::weakly_canonical(folder, failed);
  const fs::path real = failed ? fs::path() : fs::weakly_canonical(path, failed);
  AB_CHECK(!failed, Unavailable, "cannot follow {}: {}", path.string(), failed.message());
  auto r = root.begin();
  auto p = real.begin();
  while (r != root.end() && !r->empty() && p != real.end() && *r == *p) ++r, ++p;
  AB_CHECK(r == root.end() || r->empty(), InvalidArgument, "{} is outside of {}: a link points out of the folder",
           path.string(), folder);
}

std::string one_file(const std::string& folder, const std::string& filename) {
  AB_CHECK(filename.find('\0') == std::string::npos, InvalidArgument, "the file name has a zero byte in it");
  return (fs::path(folder.empty() ? "." : folder) / filename).string();
}

std::shared_ptr<const Value> value_to_save(const Scope& scope, const std::string& name) {
  const std::shared_ptr<const Value> value = scope.find_shared(name);
  AB_CHECK(value != nullptr, NotFound, "variable {} cannot be saved: it is not in the scope", name);
  AB_CHECK(value->initialized(), NotFound,
           "variable {} cannot be saved: it was never written (was the startup program run?)", name);
  AB_CHECK(value->is<Tensor>() || value->is<SelectedRows>(), InvalidArgument,
           "variable {} cannot be saved: it holds neither a tensor nor sparse rows", name);
  return value;
}

std::string stream_of(const Value& value) {
  std::string bytes;
  if (const auto* rows = value.get<SelectedRows>()) {
    write_selected_rows(*rows, &bytes);
  } else {
    write_tensor(value.tensor(), &bytes);
  }
  return bytes;
}

using Loaded = std::variant<Tensor, SelectedRows>;

std::string label(const std::string& name, const std::string& path) {
  return fmt::format("variable {} in file {}", name, path);
}

Loaded read_own_file(const Scope& scope, const std::string& name, const std::string& path) {
  const std::string bytes = read_file(path), what = label(name, path);
  std::string_view rest = bytes;
  const auto value = scope.find_shared(name);
  Loaded loaded;
  if (value && value->is<SelectedRows>()) {
    loaded = read_selected_rows(&rest, what);
  } else {
    loaded = read_tensor(&rest, what);
  }
  AB_CHECK(rest.empty(), InvalidArgument, "{}: {} extra bytes after it (at byte {})", what, rest.size(),
           bytes.size() - rest.size());
  return loaded;
}

std::vector<Loaded> read_one_file(const Scope& scope, const std::vector<std::string>& names, const std::string& path) {
  const std::string bytes = read_file_of(fs::path(path).parent_path(), path);
  std::string_view rest = bytes;
  std::vector<Loaded> loaded;
  for (const auto& name : names) {
    const auto value = scope.find_shared(name);
    AB_CHECK(!value || !value->is<SelectedRows>(), InvalidArgument,
             "variable {} holds sparse rows: they cannot be in a file with others", name);
    const size_t begin = bytes.size() - rest.size();
    try {
      loaded.emplace_back(read_tensor(&rest, label(name, path)));
    } catch (Error& e) {
      throw e.with_note(fmt::format("its part starts at byte {} of the file", begin));
    }
  }
  AB_CHECK(rest.empty(), InvalidArgument,
           "file {}: {} extra bytes after the last variable, {} (at byte {}); it holds other variables than these {}",
           path, rest.size(), names.empty() ? "none" : names.back(), bytes.size() - rest.size(), names.size());
  return loaded;
}

// Reads into the existing memory if it fits, because it may be shared (views of records, replicas).
void assign(Value* value, Loaded loaded) {
  const RunGate::Change change(value->gate().get());
  if (auto* rows = std::get_if<SelectedRows>(&loaded)) {
    value->as<SelectedRows>() = std::move(*rows);
  } else {
    Tensor& from = std::get<Tensor>(loaded);
    Tensor& to = value->as<Tensor>();
    if (to.initialized() && to.shape() == from.shape() && to.dtype() == from.dtype()) {
      to.copy_from(from);
    } else {
      to = std::move(from);
    }
  }
  value->touch();
}

}  // namespace

std::string read_file(const std::string& path) {
  RegularFile file(path);
  std::string bytes(file.size(), '\0');
  // the file became shorter meanwhile: the missing part is reported later
  bytes.resize(file.read(bytes.data(), bytes.size()));
  return bytes;
}

void check_file_of(const std::string& folder, const std::string& path) {
  check_stays_inside(folder.empty() ? "." : folder, path);
}

std::string read_file_of(const std::string& folder, const std::string& path) {
  check_file_of(folder, path);
  return read_file(path);
}

void save_vars(const Scope& scope, const std::vector<std::string>& names, const std::string& folder,
               const std::string& filename, FileSet* files) {
  const std::string root = folder.empty() ? "." : folder;
  const RunGate::Run reading(scope.gate());  // values are neither cleared nor resized while they are written
  for (const auto& name : names) {
    const auto value = value_to_save(scope, name);
    AB_CHECK(filename.empty() || !value->is<SelectedRows>(), InvalidArgument,
             "variable {} holds sparse rows: they cannot be in a file with others", name);
    if (!filename.empty()) continue;
    check_stays_inside(root, fs::path(file_of_var(root, name)).parent_path());
  }
  AtomicFile* file = filename.empty() ? nullptr : &files->add(one_file(root, filename));
  for (const auto& name : names) {
    if (filename.empty()) file = &files->add(file_of_var(root, name));
    file->write(stream_of(*value_to_save(scope, name)));
  }
}

void load_vars(Scope& scope, const std::vector<std::string>& names, const std::string& folder,
               const std::string& filename) {
  const std::string root = folder.empty() ? "." : folder;
  std::vector<Loaded> loaded;
  if (filename.empty()) {
    for (const auto& name : names) {
      const std::string path = file_of_var(root, name);
      check_stays_inside(root, path);
      loaded.push_back(read_own_file(scope, name, path));
    }
  } else {
    loaded = read_one_file(scope, names, one_file(root, filename));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto known = scope.find_shared(names[i]);
    assign((known ? known : scope.share(names[i])).get(), std::move(loaded[i]));
  }
}

}  // namespace anabranch::io
