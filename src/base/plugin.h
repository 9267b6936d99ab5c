// Shared libraries that the package loads when they are wanted. They lie beside the file that this code is in, as an
// installation has it, in the folder of a build, or in a package of their name beside this one.
#pragma once
#include <string>

namespace anabranch {

// What the library `file` exports under `symbol`. Unsupported, which says what `without` it is missing, when it is not
// there, cannot be loaded or is of another version.
void* load_plugin(const std::string& file, const char* symbol, const std::string& without);

// The file is there; it is not loaded.
bool has_plugin(const std::string& file);

}  // namespace anabranch
