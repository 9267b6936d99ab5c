// Whole files, safely: written under a temporary name, flushed to disk, renamed; a killed writer leaves the old file.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/scope.h"

namespace anabranch::io {

std::string read_file(const std::string& path);                          // NotFound, Unavailable
void write_file_atomic(const std::string& path, std::string_view data);  // makes parent folders

// Variables of a scope. One file a variable (file name = variable name, which must stay inside `folder`), or all in
// one file in the given order. Nothing is written unless everything can be; nothing is loaded unless all was read.
void save_vars(const Scope& scope, const std::vector<std::string>& names, const std::string& folder,
               const std::string& filename);
void load_vars(Scope& scope, const std::vector<std::string>& names, const std::string& folder,
               const std::string& filename);

}  // namespace anabranch::io
