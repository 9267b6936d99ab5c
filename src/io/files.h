// Whole files, safely: written under a temporary name, flushed to disk, renamed; a killed writer leaves the old file.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/scope.h"
#include "io/atomic_file.h"

namespace anabranch::io {

std::string read_file(const std::string& path);  // NotFound, Unavailable; InvalidArgument: not a regular file
// The same for a file that a folder is expected to hold; InvalidArgument when a link leads out of the folder.
std::string read_file_of(const std::string& folder, const std::string& path);
// InvalidArgument when a link leads out of the folder.
void check_file_of(const std::string& folder, const std::string& path);

// Variables of a scope. One file a variable (file name = variable name, which must stay inside `folder`), or all in
// one file in the given order. Saving adds to a set, which writes all or nothing; nothing is loaded unless all was
// read.
void save_vars(const Scope& scope, const std::vector<std::string>& names, const std::string& folder,
               const std::string& filename, FileSet* files);
void load_vars(Scope& scope, const std::vector<std::string>& names, const std::string& folder,
               const std::string& filename);

}  // namespace anabranch::io
