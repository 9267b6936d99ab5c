// Shared libraries that the package loads on demand. They are in the same folder as this library - as installed, or in
// a build folder - or in a Python package of their name next to this one.
#pragma once
#include <string>

namespace anabranch {

// The symbol that the library `file` exports. Unsupported, with what is missing `without` it, if the file does not
// exist, cannot be loaded or has another version.
void* load_plugin(const std::string& file, const char* symbol, const std::string& without);

// Whether the file exists; it is not loaded.
bool has_plugin(const std::string& file);

}  // namespace anabranch
