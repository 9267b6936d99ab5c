// Whether bytes are text. Names and attributes have to be, so that files and Python can show them.
#pragma once
#include <string_view>

namespace anabranch {

bool is_utf8(std::string_view bytes);

}  // namespace anabranch
